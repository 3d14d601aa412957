"""Substitutes for ``functools``."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable
from typing import Any

from dynamo_capture.polyfills.registry import substitutes

_MISSING: Any = object()


@substitutes(functools.reduce)
def reduce(function: Callable[[Any, Any], Any], iterable: Iterable[Any], initial: Any = _MISSING, /) -> Any:
    """Fold from the left."""
    iterator: Any = _MISSING
    with contextlib.suppress(TypeError):
        iterator = iter(iterable)
    if iterator is _MISSING:
        raise TypeError("reduce() arg 2 must support iteration")
    total = initial
    if initial is _MISSING:
        total = next(iterator, _MISSING)
        if total is _MISSING:
            raise TypeError("reduce() of empty iterable with no initial value")
    for item in iterator:
        total = function(total, item)
    return total


class _Key:
    """What ``cmp_to_key`` makes of an item: compared by the function."""

    def __init__(self, compare: Callable[[Any, Any], Any], item: Any) -> None:
        self.compare = compare
        self.obj = item

    def __lt__(self, other: Any) -> bool:
        return bool(self.compare(self.obj, other.obj) < 0)

    def __gt__(self, other: Any) -> bool:
        return bool(self.compare(self.obj, other.obj) > 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and bool(self.compare(self.obj, other.obj) == 0)

    __hash__ = None  # type: ignore[assignment]


@substitutes(functools.cmp_to_key)
def cmp_to_key(mycmp: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """A key function for sorting by comparison."""

    def key(item: Any) -> _Key:
        return _Key(mycmp, item)

    return key
