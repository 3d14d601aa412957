"""Iterators that the trace runs itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo_capture.errors import UserRaise
from dynamo_capture.values.base import IteratorStop, IteratorValue, Value
from dynamo_capture.values.constant import Const
from dynamo_capture.values.sequences import ListValue, SymRange, TupleValue

if TYPE_CHECKING:
    from dynamo_capture.trace import Trace


class SequenceIterator(IteratorValue):
    """Over items that nothing changes meanwhile. ``kind``: the iterator's class; ``owner``: what it is over."""

    __slots__ = ("has_ended", "items", "kind", "owner", "position", "source")

    def __init__(
        self,
        items: list[Value],
        kind: type = type(iter([])),  # noqa: B008  # a class
        owner: Value | None = None,
    ) -> None:
        self.items = items
        self.kind = kind
        self.owner = owner
        self.position = 0
        self.has_ended = False
        self.source = None

    def python_type(self) -> type:
        return self.kind

    def next(self, tx: Trace) -> Value:
        position = self.position
        if position >= len(self.items):
            self.has_ended = True
            raise IteratorStop
        self.position = position + 1
        return tx.force(self.items[position])


class ListIterator(IteratorValue):
    """Over a list that may still grow while it is iterated; how long it is matters at its end. ``holder``: the list,
    or the object of a class made from ``list`` whose content it is."""

    __slots__ = ("has_ended", "holder", "owner", "position", "source")

    def __init__(self, owner: ListValue) -> None:
        self.owner = owner
        self.holder: Value = owner
        self.position = 0
        self.has_ended = False
        self.source = None

    def python_type(self) -> type:
        return type(iter([]))

    def next(self, tx: Trace) -> Value:
        position = self.position
        found = self.owner.read_ahead(position)
        if found is None:
            if self.has_ended or position >= len(self.owner.items):
                self.has_ended = True
                raise IteratorStop
            found = self.owner.items[position]
        self.position = position + 1
        return tx.force(found)


class RangeIterator(IteratorValue):
    """Over a known range, which may be too long to be listed."""

    __slots__ = ("position", "range", "source")

    def __init__(self, items: range) -> None:
        self.range = items
        self.position = 0
        self.source = None

    def python_type(self) -> type:
        return type(iter(range(0)))

    @property
    def rest(self) -> range:
        """What is left."""
        return self.range[self.position :]

    def next(self, tx: Trace) -> Value:
        try:
            found = self.range[self.position]
        except IndexError:
            raise IteratorStop from None
        self.position += 1
        return Const(found)


class SymRangeIterator(IteratorValue):
    """Over a range with symbolic bounds, which are asked only whether there is another item: the number of items is
    the same then, the items need not be. Steps of one fix the bounds by that, so they are fixed at the end."""

    __slots__ = ("ascends", "owner", "position", "source")

    def __init__(self, owner: SymRange, ascends: bool) -> None:
        self.owner = owner
        self.ascends = ascends
        self.position = 0
        self.source = None

    def python_type(self) -> type:
        return type(iter(range(0)))

    def rest(self, tx: Trace) -> list[Value]:
        """The bounds of what is left."""
        start, stop, step = self.owner.bounds
        if self.position:
            start = tx.operators.binary("+", start, tx.operators.binary("*", step, Const(self.position)))
        return [start, stop, step]

    def next(self, tx: Trace) -> Value:
        item, stop, step = self.rest(tx)
        if not tx.truth(tx.operators.compare("<" if self.ascends else ">", item, stop)):
            if isinstance(step, Const) and abs(step.value) == 1:
                self.owner.fixed(tx)
            raise IteratorStop
        self.position += 1
        return item


class EnumerateIterator(IteratorValue):
    """``enumerate``."""

    __slots__ = ("inner", "position", "source")

    def __init__(self, inner: IteratorValue, start: int) -> None:
        self.inner = inner
        self.position = start
        self.source = None

    def python_type(self) -> type:
        return enumerate

    def next(self, tx: Trace) -> Value:
        item = self.inner.next(tx)
        self.position += 1
        return TupleValue([Const(self.position - 1), item])


class ZipIterator(IteratorValue):
    """``zip``; with ``strict`` unequal lengths raise ValueError."""

    __slots__ = ("inners", "source", "strict")

    def __init__(self, inners: list[IteratorValue], strict: bool) -> None:
        self.inners = inners
        self.strict = strict
        self.source = None

    def python_type(self) -> type:
        return zip

    def next(self, tx: Trace) -> Value:
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

    def _check_lengths(self, tx: Trace, ended: int) -> None:
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

    def next(self, tx: Trace) -> Value:
        while True:
            items = [inner.next(tx) for inner in self.inners]
            if not self.keeps:
                return self.function.call(tx, items, {})
            is_none = isinstance(self.function, Const) and self.function.value is None
            if tx.truth(items[0] if is_none else self.function.call(tx, items, {})):
                return items[0]


class ObjectIterator(IteratorValue):
    """An object of the program with ``__next__``."""

    __slots__ = ("source", "value")

    def __init__(self, value: Value) -> None:
        self.value = value
        self.source = None

    def python_type(self) -> type:
        return self.value.python_type()

    def identity(self) -> object:
        return self.value.identity()

    def next(self, tx: Trace) -> Value:
        try:
            return self.value.call_method(tx, "__next__", [], {})
        except UserRaise as raised:
            if issubclass(raised.value.python_type(), StopIteration):
                raise IteratorStop from None
            raise


class IndexIterator(IteratorValue):
    """``iter`` of an object that has only ``__getitem__``, from 0 up; ``reversed`` of one with ``__len__`` too, from
    its last item down. ``position``: the next index; None: the iterator has ended."""

    __slots__ = ("is_reversed", "owner", "position", "source")

    def __init__(self, owner: Value, length: int | None = None) -> None:
        self.owner = owner
        self.is_reversed = length is not None
        self.position: int | None = 0 if length is None else length - 1
        self.source = None

    def python_type(self) -> type:
        return reversed if self.is_reversed else type(iter(_ByIndex()))

    def next(self, tx: Trace) -> Value:
        position = self.position
        if position is None or position < 0:
            raise IteratorStop
        try:
            found = tx.calls.special(self.owner, "__getitem__", [Const(position)])
        except UserRaise as raised:
            if issubclass(raised.value.python_type(), (IndexError, StopIteration)):
                self.position = None
                raise IteratorStop from None
            raise
        self.position = position - 1 if self.is_reversed else position + 1
        return found


class _ByIndex:
    """A sample."""

    def __getitem__(self, index: int) -> int:
        raise IndexError


class CallIterator(IteratorValue):
    """``iter(function, sentinel)``."""

    __slots__ = ("function", "sentinel", "source")

    def __init__(self, function: Value, sentinel: Value) -> None:
        self.function = function
        self.sentinel = sentinel
        self.source = None

    def python_type(self) -> type:
        return type(iter(int, 1))

    def next(self, tx: Trace) -> Value:
        item = self.function.call(tx, [], {})
        if tx.operators.equal_or_same(item, self.sentinel):
            raise IteratorStop
        return item
