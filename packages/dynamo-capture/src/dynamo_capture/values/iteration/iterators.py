"""Iterators that the trace runs itself."""

from __future__ import annotations

from dynamo_capture.values.base import Context, IteratorStop, IteratorValue, Value
from dynamo_capture.values.constant import Const
from dynamo_capture.values.containers.sequences import TupleValue


class EnumerateIterator(IteratorValue):
    """``enumerate``."""

    __slots__ = ("inner", "position")
    python_class = enumerate

    def __init__(self, inner: IteratorValue, start: int) -> None:
        self.inner = inner
        self.position = start

    def children(self, tx: Context) -> list[Value]:
        return [self.inner]

    def next(self, tx: Context) -> Value:
        item = self.inner.next(tx)
        self.position += 1
        return TupleValue([Const(self.position - 1), item])


class ZipIterator(IteratorValue):
    """``zip``; with ``strict`` unequal lengths raise ValueError."""

    __slots__ = ("inners", "source", "strict")
    python_class = zip

    def __init__(self, inners: list[IteratorValue], strict: bool) -> None:
        self.inners = inners
        self.strict = strict
        self.source = None

    def children(self, tx: Context) -> list[Value]:
        return list(self.inners)

    def next(self, tx: Context) -> Value:
        if not self.inners:
            raise IteratorStop
        items: list[Value] = []
        for index, inner in enumerate(self.inners):
            try:
                items.append(inner.next(tx))
            except IteratorStop:
                if self.strict:
                    self._check_lengths(tx, index)
                raise
        return TupleValue(items)

    def _check_lengths(self, tx: Context, ended: int) -> None:
        if ended:
            raise tx.raises(
                ValueError,
                f"zip() argument {ended + 1} is shorter than argument{'s 1-' if ended > 1 else ' '}{ended}",
            )
        for index, inner in enumerate(self.inners[1:], 1):
            try:
                inner.next(tx)
            except IteratorStop:
                continue
            raise tx.raises(
                ValueError,
                f"zip() argument {index + 1} is longer than argument{'s 1-' if index > 1 else ' '}{index}",
            )


class MapIterator(IteratorValue):
    """``map``, and with ``keeps`` ``filter``."""

    __slots__ = ("function", "inners", "keeps", "source")

    def __init__(self, function: Value, inners: list[IteratorValue], keeps: bool = False) -> None:
        self.function = function
        self.inners = inners
        self.keeps = keeps
        self.source = None

    def python_type(self) -> type:
        return filter if self.keeps else map

    def children(self, tx: Context) -> list[Value]:
        return [self.function, *self.inners]

    def next(self, tx: Context) -> Value:
        while True:
            items = [inner.next(tx) for inner in self.inners]
            if not self.keeps:
                return self.function.call(tx, items, {})
            is_none = self.function.stands_for(None)
            if tx.truth(items[0] if is_none else self.function.call(tx, items, {})):
                return items[0]


class CallIterator(IteratorValue):
    """``iter(function, sentinel)``."""

    __slots__ = ("function", "sentinel")
    python_class = type(iter(int, 1))

    def __init__(self, function: Value, sentinel: Value) -> None:
        self.function = function
        self.sentinel = sentinel

    def children(self, tx: Context) -> list[Value]:
        return [self.function, self.sentinel]

    def next(self, tx: Context) -> Value:
        item = self.function.call(tx, [], {})
        if tx.operators.equal_or_same(item, self.sentinel):
            raise IteratorStop
        return item
