"""``range`` with symbolic bounds."""

from __future__ import annotations

from dynamo_capture.values.base import Context, IteratorStop, IteratorValue, Value
from dynamo_capture.values.constant import Const


class SymRange(Value):
    """``range`` with symbolic bounds."""

    __slots__ = ("bounds",)
    python_class = range

    def __init__(self, bounds: tuple[Value, Value, Value]) -> None:
        self.bounds = bounds

    def children(self, tx: Context) -> list[Value]:
        return list(self.bounds)

    def fixed(self, tx: Context) -> range:
        """The range with its bounds fixed to their values."""
        return range(*(tx.index(bound) for bound in self.bounds))

    def length(self, tx: Context) -> int:
        return len(self.fixed(tx))

    def get_attr(self, tx: Context, name: str) -> Value:
        if name in ("start", "stop", "step"):
            return self.bounds[("start", "stop", "step").index(name)]
        return tx.known(self.fixed(tx)).get_attr(tx, name)

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tx.known(self.fixed(tx)).call_method(tx, name, args, kwargs)

    def truth(self, tx: Context) -> bool:
        return bool(self.fixed(tx))

    def unpack(self, tx: Context) -> list[Value]:
        return tx.known(self.fixed(tx)).unpack(tx)

    def iterate(self, tx: Context) -> IteratorValue:
        zero = Const(0)
        if not tx.truth(tx.operators.compare("!=", self.bounds[2], zero)):
            return tx.known(self.fixed(tx)).iterate(tx)  # which raises
        return SymRangeIterator(self, tx.truth(tx.operators.compare(">", self.bounds[2], zero)))

    def get_item(self, tx: Context, key: Value) -> Value:
        return tx.known(self.fixed(tx)).get_item(tx, key)

    def contains(self, tx: Context, item: Value) -> bool:
        return tx.known(self.fixed(tx)).contains(tx, item)


class SymRangeIterator(IteratorValue):
    """Over a range with symbolic bounds, which are asked only whether there is another item: the number of items is
    the same then, the items need not be. Steps of one fix the bounds by that, so they are fixed at the end."""

    __slots__ = ("ascends", "owner", "position")
    python_class = type(iter(range(0)))

    def __init__(self, owner: SymRange, ascends: bool) -> None:
        self.owner = owner
        self.ascends = ascends
        self.position = 0

    def children(self, tx: Context) -> list[Value]:
        return self.rest(tx)

    def rest(self, tx: Context) -> list[Value]:
        """The bounds of what is left."""
        start, stop, step = self.owner.bounds
        if self.position:
            start = tx.operators.binary("+", start, tx.operators.binary("*", step, Const(self.position)))
        return [start, stop, step]

    def next(self, tx: Context) -> Value:
        item, stop, step = self.rest(tx)
        if not tx.truth(tx.operators.compare("<" if self.ascends else ">", item, stop)):
            if isinstance(step, Const) and abs(step.value) == 1:
                self.owner.fixed(tx)
            raise IteratorStop
        self.position += 1
        return item
