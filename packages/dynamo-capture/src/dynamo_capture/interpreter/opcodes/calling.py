"""Calls."""

from __future__ import annotations

import operator

import fx_guards
from dynamo_capture.bytecode.versions.running import RULES
from dynamo_capture.foundation.errors import UserRaise
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.opcode_table import opcode
from dynamo_capture.frames.steps import Step
from dynamo_capture.interpreter.opcodes.building import is_iterable, name_of_callable
from dynamo_capture.semantics.calls.substituted import refuse
from dynamo_capture.semantics.modes.torch_function_modes import Spread
from dynamo_capture.semantics.operators.mappings import spread_entries
from dynamo_capture.values import (
    CALLED_BY_ITSELF,
    CALLED_WITH_SELF,
    BuiltinMethod,
    Const,
    NullValue,
    Value,
)
from dynamo_capture.values.base import Context


@opcode("KW_NAMES", until=(3, 12))
def kw_names(frame: Frame, step: Step) -> None:
    frame.kw_names = step.argval


@opcode("CALL")
def call(frame: Frame, step: Step) -> None:
    names = frame.kw_names
    if names:
        frame.kw_names = ()
    _call(frame, step.arg, names)


@opcode("CALL_KW", since=(3, 13))
def call_kw(frame: Frame, step: Step) -> None:
    names = frame.stack.pop().as_constant()
    _call(frame, step.arg, names)


def _call(frame: Frame, count: int, names: tuple[str, ...]) -> None:
    stack = frame.stack
    args = stack[len(stack) - count :] if count else []
    if count:
        del stack[-count:]
    second = stack.pop()
    first = stack.pop()
    if first is CALLED_BY_ITSELF or first is CALLED_WITH_SELF or type(first) is NullValue:
        function = second
    elif type(second) is NullValue:
        function = first
    elif type(first) is Const and first.value is operator.call:  # as a resume function takes it
        function = second
    else:
        function = first
        args.insert(0, second)
    kwargs: dict[str, Value] = {}
    if names:
        cut = len(args) - len(names)
        kwargs = dict(zip(names, args[cut:], strict=True))
        del args[cut:]
    frame.callee = function
    frame.operands = tuple(args)
    if first is CALLED_WITH_SELF and type(function) is BuiltinMethod:
        stack.append(_call_with_self(frame.tx, function, args, kwargs))
    else:
        stack.append(function.call(frame.tx, args, kwargs))


def _call_with_self(tx: Context, method: BuiltinMethod, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A method in C that is called right where it is loaded: what it refuses, the method of the class refuses, which
    has another name than the bound one (``int.__trunc__`` of ``True``)."""
    try:
        return method.call(tx, args, kwargs)
    except UserRaise:
        if isinstance(method.receiver, Const):
            function = fx_guards.class_lookup(type(method.receiver.value), method.name)
            refuse(tx, Const(function), [method.receiver, *args], kwargs)
        raise


@opcode("CALL_FUNCTION_EX")
def call_function_ex(frame: Frame, step: Step) -> None:
    """Stack: callable and NULL (in the version's order), iterable, and if asked a mapping."""
    tx = frame.tx
    frame.callee = None
    frame.operands = ()
    mapping = frame.stack.pop() if step.arg & 1 else None
    positional = frame.stack.pop()
    below, above = frame.pop_n(2)
    function = above if RULES.null_before_callable else below
    if not is_iterable(positional):
        kind = positional.class_name(tx)
        text = f"{name_of_callable(tx, function)} argument after * must be an iterable, not {kind}"
        raise tx.raises(TypeError, text)
    entries = spread_entries(tx, mapping) if mapping else ()
    kwargs: dict[str, Value] = {} if mapping is None or not tx.tensors.modes else Spread()
    kwargs.update({tx.constant(key): item for key, item in entries})
    if not all(isinstance(name, str) for name in kwargs):
        raise tx.raises(TypeError, "keywords must be strings")
    frame.callee = function
    frame.stack.append(function.call(tx, list(positional.items_for_list(tx)), kwargs))
