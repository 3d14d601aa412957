"""Calls of functions that are optimized themselves: traced into, or left to be captured with their own options."""

from __future__ import annotations

from dynamo_capture._eval_frame import RegionFunction
from dynamo_capture.foundation.break_kinds import BREAK_REQUESTED
from dynamo_capture.foundation.errors import GraphBreak, NotConstant
from dynamo_capture.session.controls import is_stock_compiler, skip_reason
from dynamo_capture.values import Const, Value, is_none
from dynamo_capture.values.base import Context
from dynamo_capture.values.objects.optimized import OptimizedValue


def call_optimized(
    tx: Context, function: RegionFunction, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """A call of what ``optimize(...)(f)`` returned: with equal options, of ``f``."""
    reason = skip_reason(function.function)
    if reason is None and not tx.takes_in(function):
        name = getattr(function, "__qualname__", "a function")
        reason = f"{name} is a region with options of its own"
    if reason is not None:
        raise GraphBreak(BREAK_REQUESTED, reason)
    return Const(function.function).call(tx, args, kwargs)


def new_optimized(tx: Context, owner: Const, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A call of ``compile`` itself; None where its options are not known. Those of stock's compiler do not matter: what
    it makes here is part of what surrounds it, as what it has made before is."""
    if len(args) > 1:
        return None
    options = {name: value for name, value in kwargs.items() if name != "model"}
    model = tx.force(args[0] if args else kwargs["model"]) if args or "model" in kwargs else None
    if model is not None and is_none(model):
        model = None
    if is_stock_compiler(owner.value):
        return OptimizedValue(owner, model, options, _any_function)
    try:
        named = {name: tx.calls.python_object(value) for name, value in options.items()}
    except NotConstant:
        return None
    sample = tx.fold(lambda: owner.value(_any_function, **named))
    if sample is _any_function and model is not None:
        return model
    return OptimizedValue(owner, model, options, sample)


def _any_function() -> None:
    """Stands for a function that is compiled."""
