"""Substitutes for methods of containers that hold symbolic values."""

from __future__ import annotations

import collections
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dynamo_capture.polyfills.python.c_sizes import c_size
from dynamo_capture.polyfills.registry import substitutes


@substitutes(dict.fromkeys)
def dict_fromkeys(keys: Iterable[Any], value: Any = None) -> dict[Any, Any]:
    """A dict with one value for all keys."""
    result = {}
    for key in keys:
        result[key] = value
    return result


@substitutes(collections.OrderedDict.fromkeys)
def ordered_fromkeys(iterable: Iterable[Any], value: Any = None) -> collections.OrderedDict[Any, Any]:
    """An ordered dict with one value for all keys."""
    result: collections.OrderedDict[Any, Any] = collections.OrderedDict()
    for key in iterable:
        result[key] = value
    return result


def copy_of_ordered_subclass(self: collections.OrderedDict[Any, Any]) -> collections.OrderedDict[Any, Any]:
    """``OrderedDict.copy`` of an instance of a subclass: of that class, without the attributes."""
    result = type(self)()
    for key in collections.OrderedDict.keys(self):
        result[key] = self[key]
    return result


@substitutes(collections.defaultdict.fromkeys)
def defaultdict_fromkeys(keys: Iterable[Any], value: Any = None) -> collections.defaultdict[Any, Any]:
    """A ``defaultdict`` without a factory."""
    result: collections.defaultdict[Any, Any] = collections.defaultdict()
    for key in keys:
        result[key] = value
    return result


def _between(items: Sequence[Any], start: Any, stop: Any) -> range:
    """The positions to look at; None, which a slice takes, is refused, in other words than a slice refuses the rest."""
    if not (hasattr(type(start), "__index__") and hasattr(type(stop), "__index__")):
        raise TypeError("slice indices must be integers or have an __index__ method")
    return range(len(items))[start:stop]


@substitutes(list.index)
def list_index(self: list[Any], wanted: Any, start: int = 0, stop: int = sys.maxsize) -> int:
    """Where ``wanted`` occurs first."""
    for position in _between(self, start, stop):
        if position >= len(self):  # a comparison has made it shorter
            break
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
    """Sort in place. While code of the program runs the list is empty, and must stay so."""
    items = self[:]
    self[:] = []
    try:
        items = sorted(items, key=key, reverse=reverse)
    finally:
        was_changed = len(self) > 0
        self[:] = items
    if was_changed:
        raise ValueError("list modified during sort")


@substitutes(tuple.index)
def tuple_index(self: tuple[Any, ...], wanted: Any, start: int = 0, stop: int = sys.maxsize) -> int:
    """Where ``wanted`` occurs first."""
    for position in _between(self, start, stop):
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


@substitutes(collections.deque.extendleft)
def deque_extendleft(self: collections.deque[Any], items: Iterable[Any]) -> None:
    """Each item goes to the front in turn."""
    for item in items:
        self.appendleft(item)


@substitutes(collections.deque.rotate)
def deque_rotate(self: collections.deque[Any], n: int = 1) -> None:
    """Move items from one end to the other."""
    n = c_size(n)
    if len(self) == 0:
        return
    for _ in range(n % len(self) or len(self)):  # never none: iterators over the deque refuse to go on
        self.appendleft(self.pop())


@substitutes(collections.deque.insert)
def deque_insert(self: collections.deque[Any], index: int, item: Any) -> None:
    """Insert before ``index``; a full deque refuses."""
    index = c_size(index)
    if self.maxlen is not None and len(self) >= self.maxlen:
        raise IndexError("deque already at its maximum size")
    items = list(self)
    items.insert(index, item)
    self.clear()
    self.extend(items)


@substitutes(collections.deque.remove)
def deque_remove(self: collections.deque[Any], wanted: Any) -> None:
    """Remove the first occurrence."""
    for position, item in enumerate(list(self)):
        if item is wanted or item == wanted:
            del self[position]
            return
    raise ValueError(f"{wanted!r} is not in deque")


@substitutes(collections.deque.reverse)
def deque_reverse(self: collections.deque[Any]) -> None:
    """Reverse in place."""
    for position, item in enumerate(list(reversed(self))):
        self[position] = item


@substitutes(collections.deque.copy, collections.deque.__copy__)
def deque_copy(self: collections.deque[Any]) -> collections.deque[Any]:
    """A shallow copy with the same limit."""
    return collections.deque(self, self.maxlen)


@substitutes(collections.deque.count)
def deque_count(self: collections.deque[Any], wanted: Any) -> int:
    """How often ``wanted`` occurs."""
    return list(self).count(wanted)


@substitutes(collections.deque.index)
def deque_index(self: collections.deque[Any], wanted: Any, start: int = 0, stop: int = sys.maxsize) -> int:
    """Where ``wanted`` occurs first."""
    for position in _between(self, start, stop):
        item = self[position]
        if item is wanted or item == wanted:
            return position
    raise ValueError(f"{wanted!r} is not in deque")


@substitutes(collections._count_elements)  # type: ignore[attr-defined]
def count_elements(mapping: dict[Any, int], iterable: Iterable[Any]) -> None:
    """Count each item, as ``Counter`` does."""
    for item in iterable:
        mapping[item] = mapping.get(item, 0) + 1


@substitutes(types.SimpleNamespace.__eq__)
def namespace_eq(self: Any, other: Any) -> Any:
    """Namespaces are equal if their attributes are."""
    if not isinstance(other, types.SimpleNamespace):
        return NotImplemented
    return vars(self) == vars(other)
