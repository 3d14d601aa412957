"""Substitutes for the callables that ``operator`` makes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from dynamo_capture.polyfills.python.c_sizes import c_size
from dynamo_capture.polyfills.registry import substitutes


@substitutes(operator.attrgetter)
def attrgetter(*names: str) -> Callable[[Any], Any]:
    """A function that reads dotted attributes."""

    def read(value: Any, name: str) -> Any:
        for part in name.split("."):
            value = getattr(value, part)
        return value

    if len(names) == 1:
        return lambda value: read(value, names[0])
    return lambda value: tuple(read(value, name) for name in names)


@substitutes(operator.itemgetter)
def itemgetter(*keys: Any) -> Callable[[Any], Any]:
    """A function that reads items."""
    if len(keys) == 1:
        return lambda value: value[keys[0]]
    return lambda value: tuple(value[key] for key in keys)


@substitutes(operator.methodcaller)
def methodcaller(name: str, /, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """A function that calls a method."""
    return lambda value: getattr(value, name)(*args, **kwargs)


@substitutes(operator.countOf)
def count_of(sequence: Any, wanted: Any) -> int:
    """How often ``wanted`` occurs."""
    found = 0
    for item in sequence:
        if item is wanted or item == wanted:
            found += 1
    return found


@substitutes(operator.indexOf)
def index_of(sequence: Any, wanted: Any) -> int:
    """Where ``wanted`` occurs first."""
    for position, item in enumerate(sequence):
        if item is wanted or item == wanted:
            return position
    raise ValueError("sequence.index(x): x not in sequence")


@substitutes(operator.length_hint)
def length_hint(obj: Any, default: int = 0, /) -> int:
    """``len``, or else what ``__length_hint__`` says; ``default`` where neither answers."""
    default = c_size(default)
    cls = type(obj)
    if hasattr(cls, "__len__"):
        try:
            return len(obj)
        except TypeError:
            pass
    if not hasattr(cls, "__length_hint__"):
        return default
    try:
        hint = obj.__length_hint__()
    except TypeError:
        return default
    if hint is NotImplemented:
        return default
    if not isinstance(hint, int):
        raise TypeError(f"__length_hint__ must be an integer, not {type(hint).__name__}")
    if hint < 0:
        raise ValueError("__length_hint__() should return >= 0")
    return hint
