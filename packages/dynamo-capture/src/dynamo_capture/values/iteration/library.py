"""Iterators of ``itertools`` that the trace runs itself, each as CPython's own draws from what it is made of.

One that outlives the captured code is made again of what is left: ``remaking`` says by which function and of what.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, ClassVar

from dynamo_capture.foundation.errors import UserRaise
from dynamo_capture.runtime import iterators
from dynamo_capture.values.base import Context, IteratorStop, IteratorValue, Value
from dynamo_capture.values.constant import NONE, Const, is_none
from dynamo_capture.values.containers.sequences import ListValue, TupleValue

Remaking = tuple[Callable[..., Any], list[Value]]


class LibraryIterator(IteratorValue):
    """An iterator of ``itertools``."""

    __slots__ = ()
    kind: ClassVar[type]

    def python_type(self) -> type:
        return self.kind

    def remaking(self, tx: Context) -> Remaking:
        """The function that makes one that goes on as this one, and its arguments."""
        raise NotImplementedError

    def children(self, tx: Context) -> list[Value]:
        return self.remaking(tx)[1]

    def ended(self) -> Remaking:
        """The making of one that has no items left."""
        return iterators.ended, [Const(self.kind)]

    def step(self, tx: Context) -> Value:
        """The next item."""
        raise NotImplementedError

    def next(self, tx: Context) -> Value:
        """In C an exception of this class, whoever raises it, is the end."""
        try:
            return self.step(tx)
        except UserRaise as raised:
            if issubclass(raised.value.python_type(), StopIteration):
                raise IteratorStop from None
            raise


class ChainIterator(LibraryIterator):
    """``chain``. ``sources`` gives the iterables; None after the last."""

    __slots__ = ("current", "sources")
    kind = itertools.chain

    def __init__(self, sources: IteratorValue) -> None:
        self.sources: IteratorValue | None = sources
        self.current: IteratorValue | None = None

    def remaking(self, tx: Context) -> Remaking:
        if self.sources is None:
            return self.ended()
        if self.current is None:
            return itertools.chain.from_iterable, [self.sources]
        return iterators.chain, [self.current, self.sources]

    def step(self, tx: Context) -> Value:
        while self.sources is not None:
            if self.current is None:
                sources, self.sources = self.sources, None  # for good, where it ends or raises
                self.current = sources.next(tx).iterate(tx)
                self.sources = sources
            try:
                return self.current.next(tx)
            except IteratorStop:
                self.current = None
        raise IteratorStop


class SliceIterator(LibraryIterator):
    """``islice``: ``position`` items have been drawn, the one at ``wanted`` is given next."""

    __slots__ = ("inner", "position", "stop", "stride", "wanted")
    kind = itertools.islice

    def __init__(self, inner: IteratorValue, start: int, stop: int | None, stride: int) -> None:
        self.inner: IteratorValue | None = inner
        self.position = 0
        self.wanted, self.stop, self.stride = start, stop, stride

    def remaking(self, tx: Context) -> Remaking:
        if self.inner is None:
            return self.ended()
        stop = None if self.stop is None else max(self.stop - self.position, 0)
        bounds = (self.wanted - self.position, stop, self.stride)
        return itertools.islice, [self.inner, *map(Const, bounds)]

    def step(self, tx: Context) -> Value:
        inner, self.inner = self.inner, None  # for good, where it ends or raises
        if inner is None:
            raise IteratorStop
        while self.position < self.wanted:
            inner.next(tx)
            self.position += 1
        if self.stop is not None and self.position >= self.stop:
            raise IteratorStop
        item = inner.next(tx)
        self.position += 1
        self.wanted += self.stride
        if self.stop is not None:
            self.wanted = min(self.wanted, self.stop)
        self.inner = inner
        return item


class CountIterator(LibraryIterator):
    """``count``."""

    __slots__ = ("stride", "value")
    kind = itertools.count

    def __init__(self, value: Value, stride: Value) -> None:
        self.value, self.stride = value, stride

    def remaking(self, tx: Context) -> Remaking:
        return itertools.count, [self.value, self.stride]

    def step(self, tx: Context) -> Value:
        given = self.value
        self.value = tx.operators.binary("+", given, self.stride)
        return given


class RepeatIterator(LibraryIterator):
    """``repeat``, ``left`` times more; None: without end."""

    __slots__ = ("item", "left")
    kind = itertools.repeat

    def __init__(self, item: Value, left: int | None) -> None:
        self.item, self.left = item, left

    def remaking(self, tx: Context) -> Remaking:
        return itertools.repeat, [self.item, *([] if self.left is None else [Const(self.left)])]

    def step(self, tx: Context) -> Value:
        if self.left is not None:
            if self.left <= 0:
                raise IteratorStop
            self.left -= 1
        return self.item


class CycleIterator(LibraryIterator):
    """``cycle``: first the items of ``inner``, which are saved, then those."""

    __slots__ = ("inner", "place", "saved")
    kind = itertools.cycle

    def __init__(self, inner: IteratorValue) -> None:
        self.inner: IteratorValue | None = inner
        self.saved: list[Value] = []
        self.place = 0

    def remaking(self, tx: Context) -> Remaking:
        if self.inner is not None:
            return iterators.cycle, [ListValue(list(self.saved)), self.inner]
        return itertools.cycle, [ListValue(self.saved[self.place :] + self.saved[: self.place])]

    def step(self, tx: Context) -> Value:
        if self.inner is not None:
            try:
                item = self.inner.next(tx)
            except IteratorStop:
                self.inner = None
            else:
                self.saved.append(item)
                return item
        if not self.saved:
            raise IteratorStop
        item = self.saved[self.place]
        self.place = (self.place + 1) % len(self.saved)
        return item


class AccumulateIterator(LibraryIterator):
    """``accumulate``; ``function`` None is ``+``."""

    __slots__ = ("function", "initial", "inner", "total")
    kind = itertools.accumulate

    def __init__(self, inner: IteratorValue, function: Value, initial: Value) -> None:
        self.inner, self.function, self.initial = inner, function, initial
        self.total: Value | None = None

    def remaking(self, tx: Context) -> Remaking:
        if self.total is None:
            return iterators.accumulate, [self.inner, self.function, self.initial]
        return iterators.accumulate_on, [self.inner, self.function, self.total]

    def step(self, tx: Context) -> Value:
        if not is_none(self.initial):
            self.total, self.initial = self.initial, NONE
            return self.total
        item = self.inner.next(tx)
        if self.total is None:
            self.total = item
        elif is_none(self.function):
            self.total = tx.operators.binary("+", self.total, item)
        else:
            self.total = self.function.call(tx, [self.total, item], {})
        return self.total


class TakeIterator(LibraryIterator):
    """``takewhile``."""

    __slots__ = ("has_ended", "inner", "predicate")
    kind = itertools.takewhile

    def __init__(self, predicate: Value, inner: IteratorValue) -> None:
        self.predicate, self.inner = predicate, inner
        self.has_ended = False

    def remaking(self, tx: Context) -> Remaking:
        return self.ended() if self.has_ended else (itertools.takewhile, [self.predicate, self.inner])

    def step(self, tx: Context) -> Value:
        if self.has_ended:
            raise IteratorStop
        item = self.inner.next(tx)
        if not tx.truth(self.predicate.call(tx, [item], {})):
            self.has_ended = True
            raise IteratorStop
        return item


class DropIterator(LibraryIterator):
    """``dropwhile``."""

    __slots__ = ("gives", "inner", "predicate")
    kind = itertools.dropwhile

    def __init__(self, predicate: Value, inner: IteratorValue) -> None:
        self.predicate, self.inner = predicate, inner
        self.gives = False

    def remaking(self, tx: Context) -> Remaking:
        if self.gives:
            return iterators.drops_nothing, [self.inner]
        return itertools.dropwhile, [self.predicate, self.inner]

    def step(self, tx: Context) -> Value:
        while True:
            item = self.inner.next(tx)
            if self.gives or not tx.truth(self.predicate.call(tx, [item], {})):
                self.gives = True
                return item


class RejectIterator(LibraryIterator):
    """``filterfalse``."""

    __slots__ = ("inner", "predicate")
    kind = itertools.filterfalse

    def __init__(self, predicate: Value, inner: IteratorValue) -> None:
        self.predicate, self.inner = predicate, inner

    def remaking(self, tx: Context) -> Remaking:
        return itertools.filterfalse, [self.predicate, self.inner]

    def step(self, tx: Context) -> Value:
        while True:
            item = self.inner.next(tx)
            asked = item if is_none(self.predicate) else self.predicate.call(tx, [item], {})
            if not tx.truth(asked):
                return item


class StarMapIterator(LibraryIterator):
    """``starmap``."""

    __slots__ = ("function", "inner")
    kind = itertools.starmap

    def __init__(self, function: Value, inner: IteratorValue) -> None:
        self.function, self.inner = function, inner

    def remaking(self, tx: Context) -> Remaking:
        return itertools.starmap, [self.function, self.inner]

    def step(self, tx: Context) -> Value:
        return self.function.call(tx, list(self.inner.next(tx).items_for_list(tx)), {})


class CompressIterator(LibraryIterator):
    """``compress``."""

    __slots__ = ("inner", "selectors")
    kind = itertools.compress

    def __init__(self, inner: IteratorValue, selectors: IteratorValue) -> None:
        self.inner, self.selectors = inner, selectors

    def remaking(self, tx: Context) -> Remaking:
        return itertools.compress, [self.inner, self.selectors]

    def step(self, tx: Context) -> Value:
        while True:
            item = self.inner.next(tx)
            if tx.truth(self.selectors.next(tx)):
                return item


class PairIterator(LibraryIterator):
    """``pairwise``; ``old`` is the item before."""

    __slots__ = ("inner", "old")
    kind = itertools.pairwise

    def __init__(self, inner: IteratorValue) -> None:
        self.inner: IteratorValue | None = inner
        self.old: Value | None = None

    def remaking(self, tx: Context) -> Remaking:
        if self.inner is None:
            return self.ended()
        if self.old is None:
            return itertools.pairwise, [self.inner]
        return iterators.pairwise, [self.old, self.inner]

    def step(self, tx: Context) -> Value:
        inner, self.inner = self.inner, None  # for good, where it ends or raises
        if inner is None:
            raise IteratorStop
        old = inner.next(tx) if self.old is None else self.old
        new = inner.next(tx)
        self.inner, self.old = inner, new
        return TupleValue([old, new])
