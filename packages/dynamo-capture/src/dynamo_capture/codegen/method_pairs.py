"""Methods that a graph break finds loaded and not called yet: they are handed over as Python has them on its stack, the
method of the class beside its self, so that the call says of arguments that it refuses what it says in eager. What is
called in place of another function (``optimize(in_python=...)``) takes that one's place."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

import fx_guards
from dynamo_capture._eval_frame import leaves_methods
from dynamo_capture.bytecode.versions.running import RULES
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


def take_methods_apart(
    stack: list[Value], in_python: Mapping[Callable[..., Any], Callable[..., Any]]
) -> None:
    """Put methods and their selves where the trace has bound methods, which are called by themselves."""
    for place, value in enumerate(stack):
        if value is CALLED_BY_ITSELF or value is CALLED_WITH_SELF:
            stack[place : place + 2] = _pair(value, stack[place + 1])
        elif in_python and isinstance(value, NullValue):
            called = place + (1 if RULES.null_before_callable else -1)
            stack[called] = _called_instead(stack[called], in_python)


def _pair(by: Value, loaded: Value) -> tuple[Value, Value]:
    if type(loaded) is MethodValue and loaded.real is None and loaded.python_type() is types.MethodType:
        return loaded.function, loaded.receiver
    if by is CALLED_WITH_SELF and isinstance(loaded, BuiltinMethod):
        cls = loaded.receiver.python_type()
        found = fx_guards.class_lookup(cls, loaded.name)
        if type(found) in _METHODS and leaves_methods(cls):
            return Const(found), loaded.receiver
    return CALLED_BY_ITSELF, loaded


def _called_instead(function: Value, in_python: Mapping[Callable[..., Any], Callable[..., Any]]) -> Value:
    """What is called in place of a function."""
    if not isinstance(function, Const) or type(function.value) is not types.BuiltinFunctionType:
        return function
    found = in_python.get(function.value)
    return function if found is None else Const(found)
