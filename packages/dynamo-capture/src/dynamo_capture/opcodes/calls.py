"""Instructions that call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo_capture.bytecode.instruction import Instruction
from dynamo_capture.opcodes.registry import opcode
from dynamo_capture.values.base import NULL, Value
from dynamo_capture.values.constants import ConstantValue
from dynamo_capture.values.containers import SequenceValue

if TYPE_CHECKING:
    from dynamo_capture.frame import Frame


@opcode("KW_NAMES")
def _kw_names(frame: Frame, instruction: Instruction) -> None:
    frame.kwnames = instruction.argval  # type: ignore[assignment]


@opcode("CALL")
def _call(frame: Frame, instruction: Instruction) -> None:
    names, frame.kwnames = frame.kwnames, ()
    _do_call(frame, instruction.arg, names)


@opcode("CALL_KW", since=(3, 13))
def _call_kw(frame: Frame, instruction: Instruction) -> None:
    names = tuple(name.as_python() for name in frame.pop().items)  # type: ignore[attr-defined]
    _do_call(frame, instruction.arg, names)


def _do_call(frame: Frame, count: int, names: tuple[str, ...]) -> None:
    args = frame.popn(count)
    second, first = frame.pop(), frame.pop()
    function: Value
    if first is NULL:
        function = second
    elif second is NULL:  # 3.13 pushes the callable first
        function = first
    else:
        function = first
        args.insert(0, second)
    kwargs: dict[str, Value] = {}
    if names:
        kwargs = dict(zip(names, args[-len(names) :], strict=True))
        del args[-len(names) :]
    frame.push(function.call(frame.tracer, args, kwargs))


@opcode("CALL_FUNCTION_EX")
def _call_ex(frame: Frame, instruction: Instruction) -> None:
    tracer = frame.tracer
    kwargs: dict[str, Value] = {}
    if instruction.arg & 1:
        kwargs = {str(key): value for key, value in tracer.mapping_items(frame.pop())}
    args = list(frame.pop().iterate(tracer))
    second, first = frame.pop(), frame.pop()
    function = second if first is NULL else first
    frame.push(function.call(tracer, args, kwargs))


@opcode("CALL_INTRINSIC_1", since=(3, 12))
def _intrinsic(frame: Frame, instruction: Instruction) -> None:
    from dynamo_capture.graph_breaks import GraphBreak, Raised
    from dynamo_capture.operators import unary
    import operator

    value = frame.pop()
    match instruction.arg:
        case 3:  # INTRINSIC_STOPITERATION_ERROR
            assert value is not None
            raise Raised(value)
        case 5:  # INTRINSIC_UNARY_POSITIVE
            frame.push(unary(frame.tracer, operator.pos, "__pos__", value))
        case 6:  # INTRINSIC_LIST_TO_TUPLE
            frame.push(SequenceValue(value.items, tuple))  # type: ignore[attr-defined]
        case _:
            raise GraphBreak("opcode", f"intrinsic {instruction.arg}")


__all__ = ["ConstantValue"]
