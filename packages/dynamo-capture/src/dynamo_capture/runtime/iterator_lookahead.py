"""What an iterator of a builtin class will give next, read without advancing it.

    it = iter([5, 6, 7]); next(it)
    look_ahead(it, 0) -> 6        look_ahead(it, 1) -> 7        look_ahead(it, 2) raises Exhausted

An iterator over a list or a dict reads what its owner holds when it comes there; ``owner_of`` gives that object, so
that who reads ahead knows what must not change in between. ``__reduce__`` is how these classes show their state.
"""

from __future__ import annotations

import collections
import gc
import itertools
import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any

from fx_guards import class_lookup


class Exhausted(LookupError):
    """There are not so many items left."""


class NotReadable(LookupError):
    """The iterator's state cannot be told: its class is not known, its owner has changed or is too large."""


_MOST_ENTRIES = 2000
"""Coming to an entry of a dict takes time in proportion to its place."""

_OWNERS = (list, dict, collections.OrderedDict, collections.defaultdict)
_LIST: list[Any] = []
_DICT: dict[Any, Any] = {}
_ORDERED: collections.OrderedDict[Any, Any] = collections.OrderedDict()


def look_ahead(iterator: Any, index: int) -> Any:
    """The item that comes after ``index`` others. Raises Exhausted, or NotReadable."""
    reader = _READERS.get(type(iterator))
    if reader is None:
        raise NotReadable
    return reader(iterator, index)


def has_left(iterator: Any, count: int) -> bool:
    """Whether at least so many items are left. Raises NotReadable."""
    try:
        look_ahead(iterator, count - 1)
    except Exhausted:
        return False
    return True


def owner_of(iterator: Any) -> Any:
    """The list or dict that the iterator reads from; None for one that is exhausted, or reads what cannot change."""
    for found in gc.get_referents(iterator):
        if isinstance(found, _OWNERS):
            return found
    return None


def _of_sequence(iterator: Any, index: int) -> Any:
    """(iter, (sequence,), position): lists, tuples, ranges, strings, bytes."""
    state = iterator.__reduce__()
    (sequence,) = state[1]
    cls = type(sequence)
    if any(isinstance(class_lookup(cls, name), FunctionType) for name in ("__len__", "__getitem__")):
        raise NotReadable
    place = index + ((state[2] or 0) if len(state) > 2 else 0)
    if place >= len(sequence):
        raise Exhausted("the iterator is at its end")
    return sequence[place]


def _of_reversed(iterator: Any, index: int) -> Any:
    """(reversed, (list,), position of the next item), or (iter, ([],))."""
    state = iterator.__reduce__()
    if len(state) < 3 or index > state[2]:
        raise Exhausted("the iterator is at its end")
    return state[1][0][state[2] - index]


def _of_dict(iterator: Any, index: int) -> Any:
    remaining = operator.length_hint(iterator)
    if remaining == 0:
        return _of_rest(iterator, index)
    if index >= remaining:
        raise Exhausted("the iterator is at its end")
    owner = owner_of(iterator)
    if len(owner) > _MOST_ENTRIES:
        raise NotReadable
    view = _DICT_ITERATORS[type(iterator)](owner)
    return next(itertools.islice(view, len(owner) - remaining + index, None))


def _of_rest(iterator: Any, index: int) -> Any:
    """(iter, ([what is left],)); RuntimeError where the owner has grown or shrunk."""
    owner = owner_of(iterator)
    if owner is not None and len(owner) > _MOST_ENTRIES:
        raise NotReadable
    try:
        (rest,) = iterator.__reduce__()[1]
    except RuntimeError:
        raise NotReadable from None
    if index >= len(rest):
        raise Exhausted("the iterator is at its end")
    return rest[index]


_DICT_ITERATORS: dict[type, Callable[[dict[Any, Any]], Any]] = {
    type(iter(_DICT)): dict.keys,
    type(iter(_DICT.values())): dict.values,
    type(iter(_DICT.items())): dict.items,
}

_READERS: dict[type, Callable[[Any, int], Any]] = {
    **dict.fromkeys(map(type, (iter(_LIST), iter(()), iter(range(0)))), _of_sequence),
    **dict.fromkeys(map(type, (iter(""), iter("\xe9"), iter(b""))), _of_sequence),
    type(reversed(_LIST)): _of_reversed,
    **dict.fromkeys(_DICT_ITERATORS, _of_dict),
    type(iter(_ORDERED)): _of_rest,
}

READABLE: tuple[type, ...] = tuple(_READERS)
"""The classes that ``look_ahead`` knows."""
