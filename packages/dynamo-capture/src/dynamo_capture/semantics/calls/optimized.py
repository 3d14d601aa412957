"""Calls of functions that are optimized themselves: traced into, or left to be captured with their own options."""

from __future__ import annotations

from dynamo_capture._eval_frame import RegionFunction
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.session.controls import skip_reason
from dynamo_capture.values import Const, Value
from dynamo_capture.values.base import Context


def call_optimized(
    tx: Context, function: RegionFunction, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """A call of what ``optimize(...)(f)`` returned: with equal options, of ``f``."""
    reason = skip_reason(function)
    if reason is None and not tx.takes_in(function):
        name = getattr(function, "__qualname__", "a function")
        reason = f"{name} is a region with options of its own"
    if reason is not None:
        raise GraphBreak("CAP231", reason)
    return Const(function.function).call(tx, args, kwargs)
