"""Calls through Python: splitting a call's arguments into a fixed template and the values known only at run time."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import Expr, IntLike
from inductor_codegen.ir.program import Argument, BufferRef, CallExtern, FloatRef
from inductor_codegen.runtime.operator_call import OperatorCall, Slot, SlotKind


@dataclass(slots=True)
class RuntimeValues:
    """What generated code hands over: tensors by name, then numbers (sizes, or names of float inputs)."""

    tensors: list[str] = field(default_factory=list)
    numbers: list[IntLike | FloatRef] = field(default_factory=list)


def split(call: CallExtern) -> tuple[OperatorCall, RuntimeValues]:
    """The call as a template, and the values for its slots."""
    values = RuntimeValues()
    arguments = [*call.args, *(value for _, value in call.kwargs)]
    for argument in arguments:
        _collect(argument, values)
    filled = [_template(argument, values) for argument in arguments]
    names = [name for name, _ in call.kwargs]
    count = len(call.args)
    template = OperatorCall(
        call.op,
        tuple(filled[:count]),
        tuple(zip(names, filled[count:], strict=True)),
        len(call.results),
        call.where,
    )
    return template, values


def _collect(argument: Argument, values: RuntimeValues) -> None:
    match argument:
        case BufferRef(name):
            if name not in values.tensors:
                values.tensors.append(name)
        case Expr() | FloatRef():
            if argument not in values.numbers:
                values.numbers.append(argument)
        case tuple() | list():
            for item in argument:
                _collect(item, values)


def _template(argument: Argument, values: RuntimeValues) -> Any:
    match argument:
        case BufferRef(name):
            return Slot(SlotKind.TENSOR, values.tensors.index(name))
        case Expr():
            return Slot(SlotKind.INT, len(values.tensors) + values.numbers.index(argument))
        case FloatRef():
            return Slot(SlotKind.FLOAT, len(values.tensors) + values.numbers.index(argument))
        case tuple() | list():
            return [_template(item, values) for item in argument]
    return argument
