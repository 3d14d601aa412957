"""Classes that the trace makes: each call makes its own, while the trace works with a sample of them."""

from __future__ import annotations

import gc
import types
from collections.abc import Container
from typing import Any

from dynamo_capture.foundation.break_kinds import NOT_IN_PYTHON
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values.base import Context, Value


class NewClass(Value):
    """What a call of ``collections.namedtuple`` with these arguments makes. Wherever a value has ``sample``, the class
    that was made while tracing, this is what outlives the graph."""

    __slots__ = ("arguments", "sample")

    def __init__(self, sample: type, arguments: dict[str, Any]) -> None:
        self.sample = sample
        self.arguments = arguments

    def python_type(self) -> type:
        return type(self.sample)

    def children(self, tx: Context) -> list[Value]:
        return []


class NewType(Value):
    """What ``type(name, bases, entries)`` makes, or a ``class`` statement with this content. Functions that the trace
    made are in ``sample`` as others with the same code, which ``Tracing.new_class`` leads back to them."""

    __slots__ = ("bases", "entries", "name", "sample")
    python_class = type

    def __init__(self, sample: type, name: str, bases: list[Value], entries: dict[str, Value]) -> None:
        self.sample = sample
        self.name = name
        self.bases = bases
        self.entries = entries

    def children(self, tx: Context) -> list[Value]:
        return [*self.bases, *self.entries.values()]


ALIASES = (types.GenericAlias, types.UnionType)
"""What the trace makes of a sample, and would never make again."""


def check_constant(value: Any, made: Container[Any]) -> None:
    """End the graph where a constant that is made of a sample (``Pair[int]``, ``Pair | None``, a tuple of classes)
    would outlive the trace."""
    if type(value) in (*ALIASES, tuple, frozenset, types.BuiltinFunctionType) and _refers_to(value, made):
        reason = f"{type(value).__name__} of a class that is made in the function"
        raise GraphBreak(NOT_IN_PYTHON, reason)


def _refers_to(value: Any, made: Container[Any]) -> bool:
    for part in gc.get_referents(value):
        if type(part) in (type, types.FunctionType):
            if part in made:
                return True
        elif type(part) in (*ALIASES, tuple) and _refers_to(part, made):
            return True
    return False
