"""The functions of ``random`` and the methods of its generators that draw one number."""

from __future__ import annotations

import random
from typing import Any

from dynamo_capture.foundation.break_kinds import RANDOM_STATE
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.registry import handles
from dynamo_capture.values import (
    ObjectValue,
    Value,
)
from dynamo_capture.values.base import Context
from fx_interface.source import Source

_FLOATS = (
    "random", "uniform", "gauss", "normalvariate", "expovariate", "betavariate", "triangular", "lognormvariate",
    "vonmisesvariate", "gammavariate", "paretovariate", "weibullvariate",
)  # fmt: skip
_INTEGERS = ("randint", "randrange")
MODULE_GENERATOR: random.Random = random.random.__self__  # type: ignore[attr-defined]
"""The hidden generator behind the functions of ``random``."""


def receiver_of(tx: Context, receiver: Value) -> tuple[random.Random, Source | None]:
    """The generator whose method is called, and where it is read: None for the one behind ``random``'s functions."""
    if not isinstance(receiver, ObjectValue) or type(receiver.real) is not random.Random:
        raise GraphBreak(RANDOM_STATE, f"a random generator of the class {receiver.python_type().__name__}")
    tx.attributes.guard_type(receiver)
    source = None if receiver.real is MODULE_GENERATOR else receiver.source
    if source is None and receiver.real is not MODULE_GENERATOR:
        raise GraphBreak(RANDOM_STATE, "a random generator that cannot be read again")
    return receiver.real, source


def _method_of_generator(name: str) -> Any:
    def draw(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if kwargs:
            raise GraphBreak(RANDOM_STATE, f"random.{name}() is called with named arguments")
        real, source = receiver_of(tx, args[0])
        return tx.draws.draw(tx, real, source, name, args[1:])

    return draw


for _name in (*_FLOATS, *_INTEGERS):
    handles(getattr(random.Random, _name))(_method_of_generator(_name))


@handles(random.random)
def draw_from_module(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return tx.draws.draw(tx, MODULE_GENERATOR, None, "random", args)


def _in_python(name: str) -> Any:
    def refuse(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        raise GraphBreak(RANDOM_STATE, f"random.{name}() is called")

    return refuse


for _name in ("randbytes", "getstate", "setstate", "binomialvariate"):
    if hasattr(random.Random, _name):
        handles(getattr(random.Random, _name))(_in_python(_name))
