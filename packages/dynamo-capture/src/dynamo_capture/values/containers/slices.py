"""Slices whose bounds are values, and sizes as values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynamo_capture.values.base import Context, Value
from dynamo_capture.values.constant import Const
from dynamo_capture.values.numbers.integers import SymValue
from fx_interface.source import Source
from fx_interface.symbols import Expr


class SliceValue(Value):
    """A slice: an object of its own, whatever its bounds are. ``source``: where it is read from, if it existed."""

    __slots__ = ("bounds", "source")
    python_class = slice

    def __init__(self, bounds: tuple[Value, Value, Value], source: Source | None = None) -> None:
        self.bounds = bounds
        self.source = source

    def index(self, tx: Context) -> Any:
        return self.as_slice(tx)

    def mapped(self, tx: Context, change: Callable[[Value], Value]) -> Value:
        start, stop, step = (change(tx.force(bound)) for bound in self.bounds)
        return SliceValue((start, stop, step))

    def rebuilt(self, tx: Context, change: Callable[[Value], Any]) -> Any:
        return slice(*(change(tx.force(bound)) for bound in self.bounds))

    def frozen(self, tx: Context, tensors: list[Any]) -> Any:
        return (slice, tuple([bound.frozen(tx, tensors) for bound in self.bounds]))

    def children(self, tx: Context) -> list[Value]:
        return list(self.bounds)

    def as_constant(self) -> Any:
        return slice(*(bound.as_constant() for bound in self.bounds))

    def as_slice(self, tx: Context) -> slice:
        """The slice with symbolic bounds fixed to their value."""
        return slice(*(tx.index(bound) if not bound.stands_for(None) else None for bound in self.bounds))

    def own_attribute(self, tx: Context, name: str) -> Value | None:
        return dict(zip(("start", "stop", "step"), self.bounds, strict=True)).get(name)

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return Const(self.as_slice(tx)).call_method(tx, name, args, kwargs)

    def own_key(self, tx: Context) -> Any:
        if slice.__hash__ is not None:  # from CPython 3.12 on
            for bound in self.bounds:
                tx.hash_key(bound)
        return None

    def index_width(self) -> Any:
        return 1


def size_value(size: int | Expr) -> Value:
    """A size as a value."""
    return SymValue(size) if isinstance(size, Expr) else Const(size)


def size_of(value: Value | None) -> int | Expr | None:
    """The size that a value stands for; None for anything but an integer."""
    if value is None:
        return None
    return value.known_as(int) if value.expr is None else value.expr
