"""Functions of ``math`` for floats that only data tell: in the graph where they have Python's bits, else behind it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dynamo_capture.semantics.registry import Handler, handles
from dynamo_capture.semantics.tensors.content import data_floats, late_floats
from dynamo_capture.values import Const, TensorValue, Value
from dynamo_capture.values.base import Context


def _of_float(called: Any) -> Callable[[Handler], Handler]:
    """``math.sqrt(x)`` of a tensor is ``math.sqrt(float(x))``."""

    def for_tensors(handler: Handler) -> Handler:
        def compute(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
            if len(args) == 1 and not kwargs and isinstance(tx.force(args[0]), TensorValue):
                made = Const(float).call(tx, args, {})
                return Const(called).call(tx, [made], {})
            return handler(tx, args, kwargs)

        return compute

    return for_tensors


@handles(math.sqrt)
@_of_float(math.sqrt)
def square_root(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    return data_floats.root(tx, args[0]) if len(args) == 1 else None


def _computed_late(called: Any) -> Handler:
    def compute(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        return late_floats.function(tx, called, args)

    return compute


for _function in late_floats.FUNCTIONS:
    handles(_function)(_of_float(_function)(_computed_late(_function)))


@handles(math.fabs)
@_of_float(math.fabs)
def absolute(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    return data_floats.absolute(tx, args[0]) if len(args) == 1 else None


@handles(math.isnan)
@_of_float(math.isnan)
def is_nan(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    return data_floats.asked(tx, "isnan", args[0]) if len(args) == 1 else None


@handles(math.isinf)
@_of_float(math.isinf)
def is_infinite(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    return data_floats.asked(tx, "isinf", args[0]) if len(args) == 1 else None


@handles(math.isfinite)
@_of_float(math.isfinite)
def is_finite(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    return data_floats.asked(tx, "isfinite", args[0]) if len(args) == 1 else None


def _rounded(name: str) -> Handler:
    def compute(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        return data_floats.integer(tx, name, args[0]) if len(args) == 1 and not kwargs else None

    return compute


for _name, _function in (("floor", math.floor), ("ceil", math.ceil)):
    handles(_function)(_of_float(_function)(_rounded(_name)))
handles(math.trunc)(_rounded("trunc"))
