"""Generators of random numbers that are not Python's own: numpy's, and ``torch.Generator``."""

from __future__ import annotations

from typing import Any

from dynamo_capture.foundation.break_kinds import RANDOM_STATE
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values.base import Context, Value
from dynamo_capture.values.functions import BuiltinMethod
from fx_interface.source import Source


class DiceValue(Value):
    """An existing generator: what is drawn from it is drawn before the graph runs (``calls/drawing.py``)."""

    __slots__ = ("real", "source")

    def __init__(self, real: Any, source: Source) -> None:
        self.real = real
        self.source = source

    def python_type(self) -> type:
        return type(self.real)

    def get_attr(self, tx: Context, name: str) -> Value:
        if name in tx.draws.methods_of(type(self.real)):
            return BuiltinMethod(self, name)
        raise GraphBreak(RANDOM_STATE, f"{name} of {self.describe()} is asked for")

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tx.draws.by_method(tx, self, name, args, kwargs)
