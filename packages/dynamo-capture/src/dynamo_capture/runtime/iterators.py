"""What replacement code calls to make iterators of Python's own classes where the traced ones stood."""

from __future__ import annotations

import collections
import copy
from collections.abc import Iterator
from typing import Any

from dynamo_capture.runtime.replacement_calls import builtin_base


class _ByIndex:
    """A sequence by ``__getitem__`` alone."""

    def __getitem__(self, index: int) -> int:
        return [0][index]


_ITERATED: tuple[Any, ...] = (
    _ByIndex(),
    [0], (0,), "a", "\u00e9", b"a", {0}, {0: 0}, {0: 0}.values(), {0: 0}.items(), collections.deque([0]),
    collections.OrderedDict(a=0), range(1),
)  # fmt: skip
FORWARD: dict[type, Any] = {type(iter(items)): items for items in _ITERATED}
"""By class of iterator: what one of it is over."""
_BACKWARD: dict[type, Any] = {
    type(reversed(items)): items for items in _ITERATED if not isinstance(items, (set, _ByIndex))
}


def ended_iterator(kind: type) -> Iterator[Any]:
    """An iterator of this class that has no item any more, and has said so."""
    made: Iterator[Any] = iter(FORWARD[kind]) if kind in FORWARD else reversed(_BACKWARD[kind])
    for _ in made:
        pass
    return made


def iterator(owner: Any, position: int) -> Iterator[Any]:
    """``iter(owner)`` after ``position`` steps, past what a class of the program defines."""
    base: Any = builtin_base(type(owner))
    made: Iterator[Any] = base.__iter__(owner)
    for _ in range(position):
        next(made)
    return made


def reversed_iterator(owner: Any, position: int) -> Iterator[Any]:
    """``reversed(owner)`` after ``position`` steps."""
    made: Iterator[Any] = reversed(owner)
    for _ in range(position):
        next(made)
    return made


def by_index(owner: Any, position: int) -> Iterator[Any]:
    """``iter(owner)``, of a class with ``__getitem__`` and no ``__iter__``, after ``position`` steps."""
    made: Any = iter(owner)
    made.__setstate__(position)
    return made  # type: ignore[no-any-return]


def reversed_by_index(owner: Any, position: int) -> Iterator[Any]:
    """``reversed(owner)``, of a class with ``__len__`` and ``__getitem__``, where ``position`` is the next index."""
    made: Any = reversed(owner)
    made.__setstate__(position)
    return made  # type: ignore[no-any-return]


def set_iterator(owner: Any, left: list[Any]) -> Iterator[Any]:
    """``iter(owner)`` where these are left; over these, where the members have another order."""
    base: Any = set if isinstance(owner, set) else frozenset
    made = base.__iter__(owner)
    for _ in range(base.__len__(owner) - len(left)):
        next(made)
    rest = list(copy.copy(made))
    alike = len(rest) == len(left) and all(one is other for one, other in zip(rest, left, strict=True))
    return made if alike else iter(left)
