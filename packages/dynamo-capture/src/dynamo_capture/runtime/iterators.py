"""What replacement code calls to make iterators of Python's own classes where the traced ones stood."""

from __future__ import annotations

import collections
import contextlib
import copy
import itertools
import re
import warnings
from collections.abc import Iterable, Iterator
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


def spoiled_iterator(kind: type) -> Iterator[Any]:
    """An iterator of this class that refuses to go on, as what it is over was changed."""
    deque, members, table = collections.deque([0]), {0}, {0: 0}
    ordered = collections.OrderedDict(table)
    views = [view for owner in (table, ordered) for view in (owner.keys(), owner.values(), owner.items())]
    both: list[Any] = [deque, *views]
    started: list[Any] = [iter(members), *map(iter, both), *map(reversed, both)]
    deque.append(1)
    members.add(1)
    table[1] = ordered[1] = 1
    by_class: dict[type, Iterator[Any]] = {type(made): made for made in started}
    return by_class[kind]


def reversed_list_iterator(items: list[Any], index: int) -> Iterator[Any]:
    """``reversed(items)`` where ``index`` is that of the next item, past what a class of the program defines."""
    made: Any = list.__reversed__(items)
    made.__setstate__(index)
    return made  # type: ignore[no-any-return]


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


# Iterators of ``itertools``: what one had drawn and has not given out is put before what is left, without running code
# of the program.

GROUP: Any = type(next(itertools.groupby("a"))[1])
TEE: Any = type(itertools.tee("")[0])
_ENDED: dict[Any, tuple[Any, ...]] = {
    itertools.chain: (),
    itertools.islice: ((), 0),
    itertools.takewhile: (bool, ()),
    itertools.pairwise: ((),),
    itertools.zip_longest: (),
}
"""Arguments with which a class makes an iterator without items."""


def ended(kind: Any) -> Iterator[Any]:
    """One without items."""
    made: Iterator[Any] = kind(*_ENDED[kind])
    return made


def chain(current: Iterator[Any], sources: Iterator[Iterable[Any]]) -> Iterator[Any]:
    """``chain`` where ``current`` is read."""
    return itertools.chain.from_iterable(itertools.chain((current,), sources))


def cycle(saved: list[Any], inner: Iterator[Any]) -> Iterator[Any]:
    """``cycle`` that has given these."""
    return _after(itertools.cycle(itertools.chain(saved, inner)), len(saved))


def accumulate(inner: Iterator[Any], function: Any, initial: Any) -> Iterator[Any]:
    """``accumulate`` that has not begun."""
    return itertools.accumulate(inner, function, initial=initial)


def accumulate_on(inner: Iterator[Any], function: Any, total: Any) -> Iterator[Any]:
    """``accumulate`` that has come to ``total``."""
    return _after(itertools.accumulate(itertools.chain((total,), inner), function), 1)


def drops_nothing(inner: Iterator[Any]) -> Iterator[Any]:
    """``dropwhile`` that gives what is left."""
    return itertools.dropwhile(_no, inner)


def _no(item: Any) -> bool:
    return False


def pairwise(old: Any, inner: Iterator[Any]) -> Iterator[Any]:
    """``pairwise`` after this item."""
    return itertools.pairwise(itertools.chain((old,), inner))


def product(kind: Any, drawn: int, options: tuple[int, ...], *pools: Any) -> Iterator[Any]:
    """``product`` that has given so many."""
    return _after(kind(*pools, repeat=options[0]), drawn)


def arranged(kind: Any, drawn: int, options: tuple[int, ...], pool: Any) -> Iterator[Any]:
    """``combinations`` and the like that have given so many."""
    return _after(kind(pool, *options), drawn)


def zip_longest(filling: Any, *inners: Iterable[Any]) -> Iterator[Any]:
    """``zip_longest``."""
    return itertools.zip_longest(*inners, fillvalue=filling)


def groupby(inner: Iterator[Any], function: Any, key: Any, item: Any, wanted: Any) -> Iterator[Any]:
    """``groupby`` that has begun."""
    made: Any = itertools.groupby(inner, function)
    with _no_word_of_states():
        made.__setstate__((key, item, wanted))
    return made  # type: ignore[no-any-return]


@contextlib.contextmanager
def _no_word_of_states() -> Iterator[None]:
    """Without the warning of CPython from 3.12 on that iterators' states will go, which a program that copies none must
    not see. ``warnings.catch_warnings`` would have all warnings come again that are given once."""
    filters = warnings.filters
    filters.insert(0, _NO_STATES)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        filters.remove(_NO_STATES)  # type: ignore[attr-defined]


_NO_STATES = ("ignore", re.compile("Pickle, copy"), DeprecationWarning, re.compile(re.escape(__name__)), 0)


def ended_group() -> Iterator[Any]:
    """A group whose ``groupby`` has gone on."""
    groups = itertools.groupby("a")
    group = next(groups)[1]
    next(groups, None)
    return group


def tee(items: list[Any], inner: Iterator[Any]) -> Iterator[Any]:
    """An iterator of ``tee`` before the first item."""
    return itertools.tee(itertools.chain(items, inner), 1)[0]


def tee_at(first: Any, position: int) -> Iterator[Any]:
    """A copy of it, after so many items, which have been drawn before."""
    return _after(first.__copy__(), position)


def _after(made: Iterator[Any], steps: int) -> Iterator[Any]:
    for _ in range(steps):
        next(made)
    return made
