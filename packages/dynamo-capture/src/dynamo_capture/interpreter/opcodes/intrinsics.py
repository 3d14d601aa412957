"""CALL_INTRINSIC_1 and CALL_INTRINSIC_2: functions of the interpreter that bytecode calls by number (3.12 on)."""

from __future__ import annotations

import opcode as opcode_tables
from collections.abc import Sequence

from dynamo_capture.foundation.break_kinds import UNSUPPORTED_INSTRUCTION
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.opcode_table import INTRINSICS, intrinsic, opcode
from dynamo_capture.frames.steps import Step
from dynamo_capture.interpreter.opcodes.not_handled import INTRINSICS_NOT_HANDLED
from dynamo_capture.values import TupleValue, Value
from dynamo_capture.values.base import Context

_UNARY: Sequence[str] = getattr(opcode_tables, "_intrinsic_1_descs", ())
_BINARY: Sequence[str] = getattr(opcode_tables, "_intrinsic_2_descs", ())


@opcode("CALL_INTRINSIC_1", since=(3, 12))
def call_intrinsic_1(frame: Frame, step: Step) -> None:
    _call(frame, _UNARY[step.arg], 1)


@opcode("CALL_INTRINSIC_2", since=(3, 12))
def call_intrinsic_2(frame: Frame, step: Step) -> None:
    _call(frame, _BINARY[step.arg], 2)


def _call(frame: Frame, name: str, count: int) -> None:
    function = INTRINSICS.get(name)
    if function is None:
        raise GraphBreak(
            UNSUPPORTED_INSTRUCTION, f"{name} is not supported: {INTRINSICS_NOT_HANDLED[name].text}"
        )
    frame.stack.append(function(frame.tx, *frame.pop_n(count)))


@intrinsic("INTRINSIC_STOPITERATION_ERROR")
def stop_iteration_error(tx: Context, raised: Value) -> Value:
    """What leaves a generator instead of the exception: a StopIteration becomes a RuntimeError."""
    if not issubclass(raised.python_type(), StopIteration):
        return raised
    made = tx.raises(RuntimeError, "generator raised StopIteration").value
    made.attrs |= {"__cause__": raised, "__context__": raised}
    return made  # type: ignore[no-any-return]


@intrinsic("INTRINSIC_UNARY_POSITIVE")
def unary_positive(tx: Context, value: Value) -> Value:
    return tx.operators.unary("+", value)


@intrinsic("INTRINSIC_LIST_TO_TUPLE")
def list_to_tuple(tx: Context, value: Value) -> Value:
    return TupleValue(value.unpack(tx))
