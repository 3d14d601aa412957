"""Methods that a graph break finds loaded and not called yet: they are handed over as Python has them on its stack, the
method of the class beside its self, so that the call says of arguments that it refuses what it says in eager. What is
called in place of another function (``optimize(in_python=...)``) takes that one's place."""

from __future__ import annotations

import types
from collections.abc import Sequence

import fx_guards
from dynamo_capture._eval_frame import leaves_methods
from dynamo_capture.bytecode.decoded import decoded
from dynamo_capture.bytecode.versions.running import RULES
from dynamo_capture.codegen.bridges import consumed_by_call
from dynamo_capture.frames.frame import Frame
from dynamo_capture.values import (
    CALLED_BY_ITSELF,
    CALLED_WITH_SELF,
    BuiltinMethod,
    Const,
    MethodValue,
    Value,
)

_METHODS = (types.FunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)
"""What Python's instruction leaves beside its self."""


def prepare_stacks(frames: Sequence[Frame]) -> None:
    """The stacks of frames where a graph ends as Python has them; the last frame is before the instruction that Python
    runs."""
    for suspended in frames:
        take_methods_apart(suspended.stack)
    _call_instead(frames[-1])


def take_methods_apart(stack: list[Value]) -> None:
    """Put methods and their selves where the trace has bound methods, which are called by themselves."""
    for place, value in enumerate(stack):
        if value is CALLED_BY_ITSELF or value is CALLED_WITH_SELF:
            stack[place : place + 2] = _pair(value, stack[place + 1])


def _pair(by: Value, loaded: Value) -> tuple[Value, Value]:
    if type(loaded) is MethodValue and loaded.real is None and loaded.python_type() is types.MethodType:
        return loaded.function, loaded.receiver
    if by is CALLED_WITH_SELF and isinstance(loaded, BuiltinMethod):
        cls = loaded.receiver.python_type()
        found = fx_guards.class_lookup(cls, loaded.name)
        if type(found) in _METHODS and leaves_methods(cls):
            return Const(found), loaded.receiver
    return CALLED_BY_ITSELF, loaded


def _call_instead(frame: Frame) -> None:
    """Put what is called in place of the function that the next instruction calls where that one is."""
    in_python = frame.tx.policy.functions.in_python
    if not in_python:
        return
    taken = consumed_by_call(decoded(frame.code).body.instructions[frame.next])
    if not taken:
        return
    place = len(frame.stack) - taken + RULES.null_before_callable
    function = frame.stack[place]
    if isinstance(function, Const) and type(function.value) is types.BuiltinFunctionType:
        found = in_python.get(function.value)
        if found is not None:
            frame.stack[place] = Const(found)
