"""Calls."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dynamo_capture.opcodes.building import mapping_entries
from dynamo_capture.opcodes.registry import opcode
from dynamo_capture.values import NullValue, Value

if TYPE_CHECKING:
    from dynamo_capture.frame import Frame
    from dynamo_capture.prepared import Step


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
    if sys.version_info >= (3, 13):
        function = first
        if type(second) is not NullValue:
            args.insert(0, second)
    elif type(first) is NullValue:
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
    stack.append(function.call(frame.tx, args, kwargs))


@opcode("CALL_FUNCTION_EX")
def call_function_ex(frame: Frame, step: Step) -> None:
    tx = frame.tx
    kwargs: dict[str, Value] = {}
    frame.callee = None
    if step.arg & 1:
        for key, value in mapping_entries(tx, frame.stack.pop()):
            kwargs[tx.constant(key)] = value
    args = list(frame.stack.pop().unpack(tx))
    function = frame.stack.pop()
    if sys.version_info >= (3, 13):
        function = frame.stack.pop() if type(function) is NullValue else function
    else:
        frame.stack.pop()
    frame.callee = function
    frame.stack.append(function.call(tx, args, kwargs))
