"""Substitutes for methods of containers that hold symbolic values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dynamo_capture.polyfills.registry import substitutes


@substitutes(dict.fromkeys)
def dict_fromkeys(keys: Iterable[Any], value: Any = None) -> dict[Any, Any]:
    """A dict with one value for all keys."""
    result = {}
    for key in keys:
        result[key] = value
    return result


@substitutes(list.index)
def list_index(self: list[Any], wanted: Any, start: int = 0, stop: int | None = None) -> int:
    """Where ``wanted`` occurs first."""
    limit = len(self) if stop is None else stop
    for position in range(len(self))[start:limit]:
        item = self[position]
        if item is wanted or item == wanted:
            return position
    raise ValueError(f"{wanted!r} is not in list")


@substitutes(list.count)
def list_count(self: list[Any], wanted: Any) -> int:
    """How often ``wanted`` occurs."""
    found = 0
    for item in self:
        if item is wanted or item == wanted:
            found += 1
    return found


@substitutes(list.remove)
def list_remove(self: list[Any], wanted: Any) -> None:
    """Remove the first occurrence."""
    for position, item in enumerate(self):
        if item is wanted or item == wanted:
            del self[position]
            return
    raise ValueError("list.remove(x): x not in list")


@substitutes(list.sort)
def list_sort(self: list[Any], *, key: Callable[[Any], Any] | None = None, reverse: bool = False) -> None:
    """Sort in place."""
    self[:] = sorted(self, key=key, reverse=reverse)


@substitutes(tuple.index)
def tuple_index(self: tuple[Any, ...], wanted: Any, start: int = 0, stop: int | None = None) -> int:
    """Where ``wanted`` occurs first."""
    limit = len(self) if stop is None else stop
    for position in range(len(self))[start:limit]:
        item = self[position]
        if item is wanted or item == wanted:
            return position
    raise ValueError("tuple.index(x): x not in tuple")


@substitutes(tuple.count)
def tuple_count(self: tuple[Any, ...], wanted: Any) -> int:
    """How often ``wanted`` occurs."""
    found = 0
    for item in self:
        if item is wanted or item == wanted:
            found += 1
    return found
