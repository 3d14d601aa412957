"""Iterators that existed before the trace: their next items are read ahead, and they are advanced after the graph.

A loop that is resumed in a round has such an iterator on its stack. See docs/decisions/0021.
"""

from __future__ import annotations

from typing import Any

from dynamo_capture.foundation.break_kinds import NO_LOOKAHEAD
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.guard_kinds.iterators import ItemsLeft
from dynamo_capture.runtime.iterator_lookahead import Exhausted, NotReadable, look_ahead
from dynamo_capture.sources.sources import LookaheadSource
from dynamo_capture.values.base import Context, IteratorStop, IteratorValue, Value
from dynamo_capture.values.constant import Const
from dynamo_capture.values.containers.sequences import TupleValue
from dynamo_capture.values.iteration.iterators import ZipIterator
from fx_interface.source import Source


class RunningIterator(IteratorValue):
    """An existing iterator that draws from no other. ``owner``: the list or dict that it reads.

    ``taken`` items were read, and ``has_ended`` if it was then found exhausted; ``calls`` of the object itself are due.
    """

    __slots__ = ("calls", "has_ended", "owner", "real", "source", "taken")

    def __init__(self, real: Any, source: Source, owner: Value | None) -> None:
        self.real = real
        self.source: Source = source
        self.owner = owner
        self.taken = 0
        self.has_ended = False
        self.calls = 0

    def python_type(self) -> type:
        return type(self.real)

    def next(self, tx: Context) -> Value:
        if self.has_ended:
            raise IteratorStop
        if self.owner is not None and tx.effects.has_changed(self.owner):
            raise GraphBreak(
                NO_LOOKAHEAD, f"{self.owner.describe()} is changed and read by {self.describe()}"
            )
        if self.taken >= tx.policy.most_rounds(self.source):
            raise GraphBreak(NO_LOOKAHEAD, f"{self.describe()} gives another number of items each time")
        try:
            found = look_ahead(self.real, self.taken)
        except Exhausted:
            self.has_ended = True
            tx.effects.draws_from(self)
            raise IteratorStop from None
        except NotReadable:
            raise GraphBreak(NO_LOOKAHEAD, f"what {self.describe()} gives next cannot be told") from None
        item = tx.wrap(found, LookaheadSource(self.source, self.taken))
        self.taken += 1
        tx.effects.draws_from(self)
        return item

    def guard(self, tx: Context) -> None:
        """What was read ahead will be there, and where the loop ended, no more than that."""
        if self.has_ended or (self.taken and not self._last_is_guarded(tx)):
            tx.guards.add(ItemsLeft(self.source, self.taken, self.has_ended))
        if self.taken or self.has_ended:
            tx.policy.record_rounds(self.source, self.taken)

    def _last_is_guarded(self, tx: Context) -> bool:
        """Whether some guard reads the last item, and so fails where there is none."""
        last = LookaheadSource(self.source, self.taken - 1)
        return any(source == last for record in tx.guards.records for source in record.sources)


class RunningEnumerate(IteratorValue):
    """An existing ``enumerate``, which counts on; calling it also advances what it draws from."""

    __slots__ = ("calls", "count", "inner", "real", "source")
    python_class = enumerate

    def __init__(self, real: Any, source: Source, inner: IteratorValue, count: Value) -> None:
        self.real = real
        self.source: Source = source
        self.inner = inner
        self.count = count
        self.calls = 0

    def next(self, tx: Context) -> Value:
        tx.effects.draws_from(self)
        with tx.effects.drawn_by_another():
            item = self.inner.next(tx)
        number = self.count
        if self.calls > 1:
            number = tx.operators.binary("+", number, Const(self.calls - 1))
        return TupleValue([number, item])


def can_be_counted(value: Value) -> bool:
    """Whether calling what draws from this iterator runs nothing of the program."""
    if isinstance(value, ZipIterator):
        return all(map(can_be_counted, value.inners))
    return isinstance(value, (RunningIterator, RunningEnumerate))
