"""Substitutes for builtin functions that take callables or iterate."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dynamo_capture.polyfills.registry import substitutes

_MISSING: Any = object()


@substitutes(builtins.all)
def all_(iterable: Iterable[Any]) -> bool:
    """``all``: stops at the first false item."""
    for item in iterable:  # noqa: SIM110  # this is what all() means
        if not item:
            return False
    return True


@substitutes(builtins.any)
def any_(iterable: Iterable[Any]) -> bool:
    """``any``: stops at the first true item."""
    for item in iterable:  # noqa: SIM110  # this is what any() means
        if item:
            return True
    return False


@substitutes(builtins.sum)
def sum_(iterable: Iterable[Any], /, start: Any = 0) -> Any:
    """``sum`` by repeated ``+``."""
    if isinstance(start, (str, bytes, bytearray)):
        raise TypeError("sum() can't sum strings [use ''.join(seq) instead]")
    total = start
    for item in iterable:
        total = total + item
    return total


@substitutes(builtins.enumerate)
def enumerate_(iterable: Iterable[Any], start: int = 0) -> Iterator[tuple[int, Any]]:
    """``enumerate`` as a generator."""
    position = start
    for item in iterable:
        yield position, item
        position += 1


@substitutes(builtins.map)
def map_(function: Callable[..., Any], first: Iterable[Any], *others: Iterable[Any]) -> Iterator[Any]:
    """``map`` as a generator."""
    if others:
        for arguments in zip(first, *others, strict=False):
            yield function(*arguments)
    else:
        for item in first:
            yield function(item)


@substitutes(builtins.filter)
def filter_(function: Callable[[Any], Any] | None, iterable: Iterable[Any]) -> Iterator[Any]:
    """``filter`` as a generator."""
    for item in iterable:
        if function is None:
            if item:
                yield item
        elif function(item):
            yield item


@substitutes(builtins.zip)
def zip_(*iterables: Iterable[Any], strict: bool = False) -> Iterator[tuple[Any, ...]]:
    """``zip`` as a generator."""
    iterators = [iter(iterable) for iterable in iterables]
    while iterators:
        items = []
        for position, iterator in enumerate(iterators):
            item = next(iterator, _MISSING)
            if item is _MISSING:
                if strict:
                    _check_exhausted(iterators, position)
                return
            items.append(item)
        yield tuple(items)


def _check_exhausted(iterators: list[Iterator[Any]], position: int) -> None:
    if position:
        plural = " " if position == 1 else "s 1-"
        raise ValueError(f"zip() argument {position + 1} is shorter than argument{plural}{position}")
    for later in range(1, len(iterators)):
        if next(iterators[later], _MISSING) is not _MISSING:
            plural = " " if later == 1 else "s 1-"
            raise ValueError(f"zip() argument {later + 1} is longer than argument{plural}{later}")


def _message_when_empty(function: Callable[..., Any]) -> str:
    try:
        function(())
    except ValueError as error:
        return str(error)
    raise AssertionError(function)


_EMPTY = {"max": _message_when_empty(builtins.max), "min": _message_when_empty(builtins.min)}
"""What this CPython says of an empty argument; the wording changed in 3.12."""


def _extreme(
    arguments: tuple[Any, ...], default: Any, better: Callable[[Any, Any], Any], name: str, key: Any
) -> Any:
    if not arguments:
        raise TypeError(f"{name} expected at least 1 argument, got 0")
    if len(arguments) > 1 and default is not _MISSING:
        raise TypeError(f"Cannot specify a default for {name}() with multiple positional arguments")
    best, best_rank, found = default, None, False
    for item in arguments[0] if len(arguments) == 1 else arguments:
        rank = item if key is None else key(item)
        if not found or better(rank, best_rank):
            best, best_rank, found = item, rank, True
    if not found and default is _MISSING:
        raise ValueError(_EMPTY[name])
    return best


@substitutes(builtins.max)
def max_(*arguments: Any, default: Any = _MISSING, key: Callable[[Any], Any] | None = None) -> Any:
    """``max``: the first of equals."""
    return _extreme(arguments, default, lambda rank, best: rank > best, "max", key)


@substitutes(builtins.min)
def min_(*arguments: Any, default: Any = _MISSING, key: Callable[[Any], Any] | None = None) -> Any:
    """``min``: the first of equals."""
    return _extreme(arguments, default, lambda rank, best: rank < best, "min", key)


@substitutes(builtins.divmod)
def divmod_(numerator: Any, denominator: Any) -> tuple[Any, Any]:
    """``divmod`` by ``//`` and ``%``."""
    return numerator // denominator, numerator % denominator
