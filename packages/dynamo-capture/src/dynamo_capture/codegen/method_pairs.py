"""Methods that a graph break finds loaded and not called yet: they are handed over as Python has them on its stack, the
method of the class beside its self, so that the call says of arguments that it refuses what it says in eager. Of some
functions another is called, which gives the same at less cost."""

from __future__ import annotations

import types

import fx_guards
from dynamo_capture._eval_frame import leaves_methods
from dynamo_capture.bytecode.versions.running import RULES
from dynamo_capture.runtime.calls.recurrences import AT_LESS_COST
from dynamo_capture.values import (
    CALLED_BY_ITSELF,
    CALLED_WITH_SELF,
    BuiltinMethod,
    Const,
    MethodValue,
    NullValue,
    Value,
)

_METHODS = (types.FunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)
"""What Python's instruction leaves beside its self."""


def take_methods_apart(stack: list[Value]) -> None:
    """Put methods and their selves where the trace has bound methods, which are called by themselves."""
    for place, value in enumerate(stack):
        if value is CALLED_BY_ITSELF or value is CALLED_WITH_SELF:
            stack[place : place + 2] = _pair(value, stack[place + 1])
        elif isinstance(value, NullValue):
            called = place + (1 if RULES.null_before_callable else -1)
            stack[called] = _at_less_cost(stack[called])


def _pair(by: Value, loaded: Value) -> tuple[Value, Value]:
    if type(loaded) is MethodValue and loaded.real is None and loaded.python_type() is types.MethodType:
        return loaded.function, loaded.receiver
    if by is CALLED_WITH_SELF and isinstance(loaded, BuiltinMethod):
        cls = loaded.receiver.python_type()
        found = fx_guards.class_lookup(cls, loaded.name)
        if type(found) in _METHODS and leaves_methods(cls):
            return Const(found), loaded.receiver
    return CALLED_BY_ITSELF, loaded


def _at_less_cost(function: Value) -> Value:
    """Another function for one that is called."""
    if not isinstance(function, Const) or type(function.value) is not types.BuiltinFunctionType:
        return function
    found = AT_LESS_COST.get(function.value)
    return function if found is None else Const(found)
