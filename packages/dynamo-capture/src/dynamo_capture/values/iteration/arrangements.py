"""Iterators of ``itertools`` over several pools or inner iterators, and those that share what they draw from."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Any

from dynamo_capture.foundation.break_kinds import NOT_RECONSTRUCTIBLE
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.runtime import iterators
from dynamo_capture.values.base import Context, IteratorStop, IteratorValue, Value
from dynamo_capture.values.constant import Const
from dynamo_capture.values.containers.sequences import ListValue, TupleValue
from dynamo_capture.values.iteration.library import LibraryIterator, Remaking
from dynamo_capture.values.objects.instances import ObjectIterator


class ArrangedIterator(LibraryIterator):
    """``product``, ``combinations``, ``permutations``: the class's own iterator over positions in the ``pools``."""

    __slots__ = ("_kind", "_options", "_places", "drawn", "pools")

    def __init__(self, kind: Any, pools: list[list[Value]], options: tuple[Any, ...]) -> None:
        """``options``: the number of items for each, or how often ``product`` repeats the pools."""
        self._kind = kind
        self.pools = pools
        self._options = options
        self.drawn = 0
        places = [range(len(pool)) for pool in pools]
        made: Iterator[tuple[int, ...]]
        made = itertools.product(*places, repeat=options[0]) if self._repeats() else kind(*places, *options)
        self._places = made

    def _repeats(self) -> bool:
        return self._kind is itertools.product

    def python_type(self) -> type:
        return self._kind  # type: ignore[no-any-return]

    def remaking(self, tx: Context) -> Remaking:
        pools: list[Value] = [ListValue(list(pool)) for pool in self.pools]
        made = iterators.product if self._repeats() else iterators.arranged
        return made, [Const(self._kind), Const(self.drawn), Const(self._options), *pools]

    def step(self, tx: Context) -> Value:
        places = next(self._places, None)
        if places is None:
            raise IteratorStop
        self.drawn += 1
        pools = self.pools * (self._options[0] if self._repeats() else len(places))
        return TupleValue([tx.force(pool[place]) for pool, place in zip(pools, places, strict=True)])


class LongestIterator(LibraryIterator):
    """``zip_longest``; an inner iterator that has ended is None."""

    __slots__ = ("filling", "inners")
    kind = itertools.zip_longest

    def __init__(self, inners: list[IteratorValue], filling: Value) -> None:
        self.inners: list[IteratorValue | None] = list(inners)
        self.filling = filling

    def remaking(self, tx: Context) -> Remaking:
        if not any(self.inners):
            return self.ended()
        inners = [TupleValue([]) if inner is None else inner for inner in self.inners]
        return iterators.zip_longest, [self.filling, *inners]

    def step(self, tx: Context) -> Value:
        if all(inner is None for inner in self.inners):
            raise IteratorStop
        items = []
        for index, inner in enumerate(self.inners):
            try:
                items.append(self.filling if inner is None else inner.next(tx))
            except IteratorStop:
                self.inners[index] = None
                if all(inner is None for inner in self.inners):
                    raise
                items.append(self.filling)
            except BaseException:
                self.inners = [None] * len(self.inners)
                raise
        return TupleValue(items)


class GroupIterator(LibraryIterator):
    """``groupby``. ``key`` and ``item`` are those that were drawn last, ``wanted`` is the key of the group that was
    given out last; only that group, ``current``, still gives items."""

    __slots__ = ("current", "function", "inner", "item", "key", "wanted")
    kind = itertools.groupby

    def __init__(self, inner: IteratorValue, function: Value | None) -> None:
        self.inner, self.function = inner, function
        self.key: Value | None = None
        self.item: Value | None = None
        self.wanted: Value | None = None
        self.current: MemberIterator | None = None

    def remaking(self, tx: Context) -> Remaking:
        function = Const(None) if self.function is None else self.function
        if self.key is None or self.wanted is None:
            if self.item is not None:
                raise GraphBreak(
                    NOT_RECONSTRUCTIBLE, "a groupby object outlives the captured code, after an exception"
                )
            return itertools.groupby, [self.inner, function]
        _check_states()
        item = Const(None) if self.item is None else self.item
        return iterators.groupby, [self.inner, function, self.key, item, self.wanted]

    def draw(self, tx: Context) -> None:
        """Go on to the next item of the inner iterator."""
        item = self.inner.next(tx)
        key = item if self.function is None else self.function.call(tx, [item], {})
        self.item, self.key = item, key

    def step(self, tx: Context) -> Value:
        self.current = None
        while self.key is None or (
            self.wanted is not None and tx.operators.equal_or_same(self.wanted, self.key)
        ):
            self.draw(tx)
        self.wanted = self.key
        self.current = MemberIterator(self, self.key)
        return TupleValue([self.key, self.current])


class MemberIterator(LibraryIterator):
    """One group of ``groupby``."""

    __slots__ = ("parent", "wanted")
    kind = iterators.GROUP

    def __init__(self, parent: GroupIterator, wanted: Value) -> None:
        self.parent, self.wanted = parent, wanted

    def remaking(self, tx: Context) -> Remaking:
        if self.parent.current is not self:
            return iterators.ended_group, []
        if self.parent.item is None:
            raise GraphBreak(NOT_RECONSTRUCTIBLE, "a group that was begun outlives the captured code")
        _check_states()
        return self.kind, [self.parent, self.wanted]

    def step(self, tx: Context) -> Value:
        parent = self.parent
        if parent.current is not self:
            raise IteratorStop
        if parent.item is None:
            parent.draw(tx)
        assert parent.key is not None
        if not tx.operators.equal_or_same(self.wanted, parent.key):
            raise IteratorStop
        item, parent.item = parent.item, None
        assert item is not None
        return item


def _check_states() -> None:
    if sys.version_info >= (3, 14):  # which has no way to make one
        raise GraphBreak(NOT_RECONSTRUCTIBLE, "a groupby object that was begun outlives the captured code")


class SharedItems(Value):
    """What the iterators of one ``tee`` share: where the items come from, and those that were drawn."""

    __slots__ = ("inner", "items")

    def __init__(self, inner: IteratorValue) -> None:
        self.inner = inner
        self.items: list[Value] = []

    def python_type(self) -> type:
        return TeeIterator.kind  # type: ignore[no-any-return]

    def remaking(self, tx: Context) -> Remaking:
        """The making of an iterator at the first item, of which the others are copies. It does not ask again where
        the items end, as CPython's does, which an object of the program would see."""
        if self.items and isinstance(self.inner, ObjectIterator):
            raise GraphBreak(
                NOT_RECONSTRUCTIBLE, "an iterator of tee that was begun outlives the captured code"
            )
        return iterators.tee, [ListValue(list(self.items)), self.inner]

    def children(self, tx: Context) -> list[Value]:
        return self.remaking(tx)[1]


class TeeIterator(LibraryIterator):
    """One of the iterators that ``tee`` gives."""

    __slots__ = ("position", "shared")
    kind = iterators.TEE

    def __init__(self, shared: SharedItems, position: int = 0) -> None:
        self.shared, self.position = shared, position

    def remaking(self, tx: Context) -> Remaking:
        return iterators.tee_at, [self.shared, Const(self.position)]

    def step(self, tx: Context) -> Value:
        items = self.shared.items
        if self.position == len(items):
            items.append(self.shared.inner.next(tx))
        self.position += 1
        return items[self.position - 1]


LIBRARY_ITERATORS: tuple[type[LibraryIterator], ...] = (*LibraryIterator.__subclasses__(),)
"""The classes of values that are iterators of ``itertools``."""
