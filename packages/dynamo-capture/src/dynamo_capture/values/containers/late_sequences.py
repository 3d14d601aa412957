"""Lists and tuples whose items are made when something asks for them: until then nothing depends on how many there are.

    sizes = counts.tolist()                   # a list of as many numbers as ``counts`` has
    parts = torch.split(x, sizes)             # as many parts
    y = torch.cat(parts)                      # and nobody has asked how many
    places = torch.tensor(list(range(n)))     # nor how many places there are

A result of the code that is still unread is made by Python, as the program has written it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from dynamo_capture.values.base import Context, IteratorValue, Value
from dynamo_capture.values.constant import Const
from dynamo_capture.values.containers.ranges import SymRange
from dynamo_capture.values.containers.sequences import ListValue, TupleValue
from dynamo_capture.values.sequence_iterator import SequenceIterator
from dynamo_capture.values.tensors.tensor import TensorValue

Items = Callable[[], list[Value]]


class _LateList(ListValue):
    """A list whose items are made when one is asked for, all at once."""

    __slots__ = ()

    def read_ahead(self, index: int) -> Value | None:
        return None

    def append(self, tx: Context, items: list[Value]) -> None:
        self.unpack(tx)
        super().append(tx, items)


class NumberList(_LateList):
    """``tensor.tolist()`` of a tensor with dimensions; as it was then: who writes to the tensor asks for the items
    first."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: TensorValue, make: Items) -> None:
        super().__init__([], unread=make)
        self.tensor = tensor

    @property
    def kinds(self) -> list[Value]:
        return [] if self.is_unread else self.items

    def children(self, tx: Context) -> list[Value]:
        return [self.tensor] if self.is_unread else super().children(tx)


class PartsTuple(TupleValue):
    """The parts of ``whole`` along a dimension: of these ``sizes`` (``whole.split(sizes, dim)``), or all that is at one
    place (``whole.unbind(dim)``). They are views, made with gradients and inference mode on or off, as
    those are ``with_gradients`` and ``inferring`` wherever they are asked for."""

    __slots__ = ("_made", "_make", "dim", "inferring", "sizes", "whole", "with_gradients")

    def __init__(self, whole: TensorValue, sizes: NumberList | None, dim: int, make: Items) -> None:
        self._make: Items | None = make
        super().__init__([])
        self.with_gradients, self.inferring = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        self.whole, self.sizes, self.dim = whole, sizes, dim

    @property
    def is_unread(self) -> bool:
        """Whether nothing has asked for an item yet, or how many there are."""
        return self._make is not None

    @property
    def items(self) -> list[Value]:
        """All items."""
        if self._make is not None:
            self._made = self._make()
            self._make = None
        return self._made

    @items.setter
    def items(self, items: list[Value]) -> None:
        self._made = items

    @property
    def kinds(self) -> list[Value]:
        return [self.whole] if self.is_unread else self.items

    def identity(self) -> object:
        return self

    def children(self, tx: Context) -> list[Value]:
        if not self.is_unread:
            return super().children(tx)
        return [self.whole] if self.sizes is None else [self.whole, self.sizes]

    def iterate(self, tx: Context) -> IteratorValue:
        return PartsIterator(self) if self.is_unread else super().iterate(tx)


class PartsIterator(SequenceIterator):
    """Over parts, from the first one on."""

    __slots__ = ("parts_iterated",)

    def __init__(self, owner: PartsTuple) -> None:
        self.parts_iterated = owner
        super().__init__([], type(iter(())), owner)

    @property
    def is_unread(self) -> bool:
        """Whether nothing has asked for an item yet."""
        return self.parts_iterated.is_unread

    @property
    def items(self) -> list[Value]:
        """All items."""
        return self.parts_iterated.items

    @items.setter
    def items(self, items: list[Value]) -> None:
        assert not items

    def children(self, tx: Context) -> list[Value]:
        return [self.parts_iterated] if self.is_unread else super().children(tx)


class PartsList(_LateList):
    """A list of parts."""

    __slots__ = ("origin",)

    def __init__(self, origin: PartsTuple) -> None:
        super().__init__([], unread=lambda: list(origin.items))
        self.origin = origin

    @property
    def kinds(self) -> list[Value]:
        return self.origin.kinds if self.is_unread else self.items

    def children(self, tx: Context) -> list[Value]:
        return [self.origin] if self.is_unread else super().children(tx)


class RangeList(ListValue):
    """``list(range(start, stop))`` of sizes, which goes up or down by one."""

    __slots__ = ("range",)

    def __init__(self, tx: Context, numbers: SymRange) -> None:
        super().__init__([], unread=lambda: numbers.unpack(tx))
        self.range = numbers

    @property
    def kinds(self) -> list[Value]:
        return [] if self.is_unread else self.items

    def read_ahead(self, index: int) -> Value | None:
        return None

    def append(self, tx: Context, items: list[Value]) -> None:
        self.unpack(tx)
        super().append(tx, items)

    def children(self, tx: Context) -> list[Value]:
        return [self.range] if self.is_unread else super().children(tx)

    def has_items(self, tx: Context) -> bool:
        """Whether there is any."""
        start, stop, step = self.range.bounds
        return tx.truth(tx.operators.compare("<" if step.known_as(int) == 1 else ">", start, stop))

    def slice_of(self, tx: Context, window: slice) -> Value:
        if not self.is_unread or window != slice(None, None, -1) or not self.has_items(tx):
            return super().slice_of(tx, window)
        start, stop, step = self.range.bounds
        ends = [tx.operators.binary("-", end, step) for end in (stop, start)]
        return RangeList(tx, SymRange((ends[0], ends[1], tx.operators.binary("-", Const(0), step))))


class RepeatedList(_LateList):
    """``[a] * n`` of a size ``times``: the constants ``part``, as often as that."""

    __slots__ = ("part", "times")

    def __init__(self, tx: Context, part: list[Value], times: Value) -> None:
        super().__init__([], unread=lambda: part * tx.integer(times))
        self.part, self.times = part, times

    @property
    def kinds(self) -> list[Value]:
        return self.part if self.is_unread else self.items

    def children(self, tx: Context) -> list[Value]:
        return [*self.part, self.times] if self.is_unread else super().children(tx)
