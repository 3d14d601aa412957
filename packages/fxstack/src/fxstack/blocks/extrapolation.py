"""A record for many blocks from those for few: what grows from one to the next goes on growing by the same.

    for 4 blocks: (a 0, b 1, b 2, b 3, c 4)
    for 5 blocks: (a 0, b 1, b 2, b 3, b 4, c 5)
    for 7 blocks: (a 0, b 1, b 2, b 3, b 4, b 5, b 6, c 7)

Records are dataclasses, tuples, integers and constants. A tuple that is longer for five blocks than for four has got
another round of items somewhere, equal to those of the round before but for integers. Each integer is a constant plus a
multiple of the number of blocks plus a multiple of the round; that is checked on every round that there is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any, TypeVar

from fx_interface.errors import UserLocation
from fx_interface.python_runtime.quick_dataclasses import dataclass

Record = TypeVar("Record")
_MOST_WINDOWS = 8
"""How many times a tuple may have grown: more is no repetition of blocks."""


class NotRegular(Exception):
    """Two records do not differ as those for one block more do."""


@dataclass(frozen=True, slots=True)
class _Item:
    """An item of a tuple: ``kind`` stands for all of it but its ``integers``."""

    kind: int
    integers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Window:
    """A round that the longer tuple has and the other one has not: where it would be in that, where it is, its
    length."""

    shorter: int
    longer: int
    length: int


def extended(shorter: Record, longer: Record, more: int) -> Record:
    """The record for ``more`` blocks more than ``shorter``, where ``longer`` is the one for one more. NotRegular."""
    made: Record = _extended(shorter, longer, more)
    return made


def _extended(a: Any, b: Any, more: int) -> Any:
    kind: Any = type(a)
    if a.__class__ is not b.__class__:
        raise NotRegular(f"{a!r} and {b!r}")
    if kind is int:
        return a + more * (b - a)
    if kind is tuple:
        if len(a) != len(b):
            return _longer_tuple(a, b, more)
        return tuple([_extended(one, other, more) for one, other in zip(a, b, strict=True)])
    if _is_record(kind):
        return kind(*[_extended(getattr(a, name), getattr(b, name), more) for name in _names(kind)])
    if not (a is b or _constant(a) == _constant(b)):
        raise NotRegular(f"{a!r} and {b!r}")
    return a


def _longer_tuple(a: tuple[Any, ...], b: tuple[Any, ...], more: int) -> tuple[Any, ...]:
    kinds: dict[Hashable, int] = {}
    templates: list[Any] = []
    few, many = (_items(items, kinds, templates) for items in (a, b))
    windows = _windows(few, many, 0, 0, _MOST_WINDOWS)
    if windows is None:
        raise NotRegular(f"tuples of {len(a)} and {len(b)} items")
    made: list[Any] = []
    i = j = 0
    for window in windows:
        made += _between(few, many, i, j, window.shorter - i, more, templates)
        made += _rounds(few, many, window, more, templates)
        i, j = window.shorter, window.longer + window.length
    made += _between(few, many, i, j, len(few) - i, more, templates)
    return tuple(made)


def _items(items: tuple[Any, ...], kinds: dict[Hashable, int], templates: list[Any]) -> list[_Item]:
    """Items with their kinds as numbers; ``templates`` has how each kind's items are made."""
    found = []
    for item in items:
        integers: list[int] = []
        kind = _taken_apart(item, integers)
        number = kinds.get(kind)
        if number is None:
            number = kinds[kind] = len(kinds)
            templates.append(_maker(item))
        found.append(_Item(number, tuple(integers)))
    return found


def _taken_apart(item: Any, integers: list[int]) -> Hashable:
    """All of ``item`` but its integers, which are added to ``integers`` in their order."""
    kind: Any = type(item)
    if kind is int:
        integers.append(item)
        return int
    if kind is tuple:
        if _is_name(item):
            integers.append(item[1])
            return ("name", item[0])
        return (tuple, *[_taken_apart(part, integers) for part in item])
    if _is_record(kind):
        return (kind, *[_taken_apart(getattr(item, name), integers) for name in _names(kind)])
    return _constant(item)


def _is_name(item: tuple[Any, ...]) -> bool:
    """Whether a tuple is a text and a number, as names of buffers are, which is most of what there is."""
    return len(item) == 2 and type(item[0]) is str and type(item[1]) is int


def _constant(item: Any) -> Hashable:
    """What tells constants apart: zeros by their signs, too, and numbers by their types."""
    return (type(item), repr(item) if type(item) in (float, complex) else item)


Maker = Callable[[Any], Any]


def _maker(item: Any) -> Maker:
    """How one like ``item`` is made from an iterator of its integers."""
    kind: Any = type(item)
    if kind is int:
        return next
    if kind is not tuple and not _is_record(kind):
        return lambda integers: item
    parts = item if kind is tuple else [getattr(item, name) for name in _names(kind)]
    makers = [_maker(part) for part in parts]
    if not _taken(item):
        return lambda integers: item
    if kind is tuple:
        return lambda integers: tuple([make(integers) for make in makers])
    return lambda integers: kind(*[make(integers) for make in makers])


def _taken(item: Any) -> list[int]:
    integers: list[int] = []
    _taken_apart(item, integers)
    return integers


def _windows(few: list[_Item], many: list[_Item], i: int, j: int, left: int) -> list[_Window] | None:
    """Where ``many[j:]`` has rounds that ``few[i:]`` has not; None if they differ in another way."""
    while i < len(few) and j < len(many) and few[i].kind == many[j].kind:
        i, j = i + 1, j + 1
    rest = (len(many) - j) - (len(few) - i)
    if rest == 0:
        return [] if i == len(few) else None
    if left == 0 or rest < 0:
        return None
    # what stands behind the rounds may look like the beginning of one, and the last round may be another
    usual = ((length, back) for length in range(rest, 0, -1) for back in range(length))
    for length, back in chain(usual, ((rest, back) for back in range(rest, i - 2 * rest + 1))):
        window = _Window(i - back, j - back, length)
        if _repeats(few, many, window):
            behind = _windows(few, many, i - back, j - back + length, left - 1)
            if behind is not None:
                return [window, *behind]
    return None


def _repeats(few: list[_Item], many: list[_Item], window: _Window) -> bool:
    """Whether a window has what the two rounds before it have, with integers that go on as they do."""
    length, i, j = window.length, window.shorter, window.longer
    if j + length > len(many) or i < 2 * length:
        return False
    for o in range(length):
        new, last, first = many[j + o], many[j - length + o], many[j - 2 * length + o]
        if new.kind != last.kind or last.kind != first.kind:
            return False
        last_few, first_few = few[i - length + o], few[i - 2 * length + o]
        if last_few.kind != last.kind or first_few.kind != first.kind:
            return False
        step = _difference(last.integers, first.integers)
        if _difference(new.integers, last.integers) != step:
            return False
        if _difference(last_few.integers, first_few.integers) != step:
            return False
    return True


def _difference(one: Sequence[int], other: Sequence[int]) -> list[int]:
    return [a - b for a, b in zip(one, other, strict=True)]


def _grown(a: _Item, b: _Item, more: int) -> list[int]:
    return [one + more * (other - one) for one, other in zip(a.integers, b.integers, strict=True)]


def _between(
    few: list[_Item], many: list[_Item], i: int, j: int, count: int, more: int, templates: list[Maker]
) -> list[Any]:
    """Items that both tuples have."""
    pairs = zip(few[i : i + count], many[j : j + count], strict=True)
    return [templates[a.kind](iter(_grown(a, b, more))) for a, b in pairs]


def _rounds(
    few: list[_Item], many: list[_Item], window: _Window, more: int, templates: list[Maker]
) -> list[Any]:
    """The rounds that come in: ``more`` of them, which go on from the one that stands before them."""
    length, i, j = window.length, window.shorter, window.longer
    items: list[tuple[Any, _Shift | None]] = []
    for o in range(length):
        before, now = many[j - length + o], many[j + o]
        last = templates[before.kind](iter(_grown(few[i - length + o], before, more)))
        items.append((last, _shift(last, iter(_difference(now.integers, before.integers)))))
    return [
        item if shift is None else shift(number) for number in range(1, more + 1) for item, shift in items
    ]


_Shift = Callable[[int], Any]
"""What makes an item so many rounds later."""


def _shift(item: Any, steps: Iterator[int]) -> _Shift | None:
    """How an item changes whose integers grow by ``steps`` from round to round; None if it stays as it is."""
    kind: Any = type(item)
    if kind is int:
        step = next(steps)
        return (lambda number: item + number * step) if step else None
    if kind is not tuple and not _is_record(kind):
        return None
    if kind is tuple and _is_name(item):
        (text, first), step = item, next(steps)
        return (lambda number: (text, first + number * step)) if step else None
    parts = item if kind is tuple else [getattr(item, name) for name in _names(kind)]
    shifts = [_shift(part, steps) for part in parts]
    if not any(shifts):
        return None
    pairs = list(zip(parts, shifts, strict=True))
    if kind is tuple:
        return lambda number: tuple([part if shift is None else shift(number) for part, shift in pairs])
    if len(changing := [place for place, shift in enumerate(shifts) if shift is not None]) == 1:
        (place,), (only,) = changing, [shift for shift in shifts if shift is not None]
        before, behind = parts[:place], parts[place + 1 :]
        return lambda number: kind(*before, only(number), *behind)
    return lambda number: kind(*[part if shift is None else shift(number) for part, shift in pairs])


@cache
def _is_record(kind: Hashable) -> bool:
    return dataclasses.is_dataclass(kind) and kind is not UserLocation


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))
