"""Instructions that move values: constants, copies, operators."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from dynamo_capture.bytecode.instruction import Instruction
from dynamo_capture.opcodes.registry import opcode
from dynamo_capture.operators import binary, compare, identical, unary
from dynamo_capture.values.base import NULL
from dynamo_capture.values.constants import ConstantValue, is_literal
from dynamo_capture.values.containers import SliceValue

if TYPE_CHECKING:
    from dynamo_capture.frame import Frame


@opcode("NOP", "RESUME", "PRECALL", "EXTENDED_ARG", "MAKE_CELL_DONE", "COPY_FREE_VARS")
def _nothing(frame: Frame, instruction: Instruction) -> None:
    pass


@opcode("CACHE_NOTHING")
def _cache(frame: Frame, instruction: Instruction) -> None:
    pass


@opcode("LOAD_CONST")
def _load_const(frame: Frame, instruction: Instruction) -> None:
    value = instruction.argval
    frame.push(ConstantValue(value) if is_literal(value) else frame.tracer.of_python(value))


@opcode("POP_TOP", "END_FOR", "POP_ITER")
def _pop_top(frame: Frame, instruction: Instruction) -> None:
    frame.pop()


@opcode("PUSH_NULL")
def _push_null(frame: Frame, instruction: Instruction) -> None:
    frame.push(NULL)


@opcode("COPY")
def _copy(frame: Frame, instruction: Instruction) -> None:
    frame.push(frame.stack[-instruction.arg])


@opcode("SWAP")
def _swap(frame: Frame, instruction: Instruction) -> None:
    stack, depth = frame.stack, instruction.arg
    stack[-1], stack[-depth] = stack[-depth], stack[-1]


@opcode("BINARY_OP")
def _binary(frame: Frame, instruction: Instruction) -> None:
    rhs, lhs = frame.pop(), frame.pop()
    frame.push(binary(frame.tracer, str(instruction.argval), lhs, rhs))


@opcode("COMPARE_OP")
def _compare(frame: Frame, instruction: Instruction) -> None:
    rhs, lhs = frame.pop(), frame.pop()
    result = compare(frame.tracer, str(instruction.argval).removeprefix("bool(").removesuffix(")"), lhs, rhs)
    frame.push(result)


@opcode("IS_OP")
def _is(frame: Frame, instruction: Instruction) -> None:
    rhs, lhs = frame.pop(), frame.pop()
    frame.push(ConstantValue(identical(frame.tracer, lhs, rhs) != bool(instruction.arg)))


@opcode("CONTAINS_OP")
def _contains(frame: Frame, instruction: Instruction) -> None:
    container, item = frame.pop(), frame.pop()
    tracer = frame.tracer
    found = tracer.contains(container, item).truth(tracer)
    frame.push(ConstantValue(found != bool(instruction.arg)))


@opcode("UNARY_NEGATIVE")
def _negative(frame: Frame, instruction: Instruction) -> None:
    frame.push(unary(frame.tracer, operator.neg, "__neg__", frame.pop()))


@opcode("UNARY_POSITIVE")
def _positive(frame: Frame, instruction: Instruction) -> None:
    frame.push(unary(frame.tracer, operator.pos, "__pos__", frame.pop()))


@opcode("UNARY_INVERT")
def _invert(frame: Frame, instruction: Instruction) -> None:
    frame.push(unary(frame.tracer, operator.invert, "__invert__", frame.pop()))


@opcode("UNARY_NOT")
def _not(frame: Frame, instruction: Instruction) -> None:
    frame.push(ConstantValue(not frame.pop().truth(frame.tracer)))


@opcode("TO_BOOL", since=(3, 13))
def _to_bool(frame: Frame, instruction: Instruction) -> None:
    frame.push(ConstantValue(frame.pop().truth(frame.tracer)))


@opcode("BINARY_SUBSCR")
def _subscript(frame: Frame, instruction: Instruction) -> None:
    key, container = frame.pop(), frame.pop()
    frame.push(frame.tracer.getitem(container, key))


@opcode("STORE_SUBSCR")
def _store_subscript(frame: Frame, instruction: Instruction) -> None:
    key, container, value = frame.pop(), frame.pop(), frame.pop()
    container.setitem(frame.tracer, key, value)


@opcode("DELETE_SUBSCR")
def _delete_subscript(frame: Frame, instruction: Instruction) -> None:
    key, container = frame.pop(), frame.pop()
    container.delitem(frame.tracer, key)


@opcode("BINARY_SLICE", since=(3, 12))
def _binary_slice(frame: Frame, instruction: Instruction) -> None:
    container, start, stop = frame.popn(3)
    frame.push(frame.tracer.getitem(container, SliceValue([start, stop, ConstantValue(None)])))


@opcode("STORE_SLICE", since=(3, 12))
def _store_slice(frame: Frame, instruction: Instruction) -> None:
    value, container, start, stop = frame.popn(4)
    container.setitem(frame.tracer, SliceValue([start, stop, ConstantValue(None)]), value)
