"""Iterators over arrays of numpy, which read a row when they come to it."""

from __future__ import annotations

from dynamo_capture.values.base import Context, IteratorStop, Value
from dynamo_capture.values.constant import Const
from dynamo_capture.values.objects.instances import IndexIterator
from dynamo_capture.values.tensors.array import ArrayValue


class ArrayIterator(IndexIterator):
    """``iter(array)``, or ``reversed(array)``, of an array with ``count`` rows.

    rows = iter(array)
    array[0] = 7
    next(rows)              # 7
    """

    __slots__ = ("count",)

    def __init__(self, owner: ArrayValue, count: int, is_reversed: bool) -> None:
        super().__init__(owner, count if is_reversed else None)
        self.count = count

    def next(self, tx: Context) -> Value:
        position = self.position
        if position is None or not 0 <= position < self.count:
            self.position = None
            raise IteratorStop
        found = self.owner.get_item(tx, Const(position))
        self.position = position - 1 if self.is_reversed else position + 1
        return found

    def _ask_for_hint(self, tx: Context) -> None:
        """An array's length is no code of the program."""
