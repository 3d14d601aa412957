"""Operators, comparisons, identity, membership."""

from __future__ import annotations

from dynamo_capture.bytecode.versions.running import RULES
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.opcode_table import opcode
from dynamo_capture.frames.steps import Step
from dynamo_capture.interpreter.opcodes.branches.assuming import assumed
from dynamo_capture.interpreter.opcodes.branches.joining import joined_copies, joined_jumps
from dynamo_capture.interpreter.opcodes.branches.merging import as_condition, merged
from dynamo_capture.interpreter.opcodes.branches.skipping import not_skipped
from dynamo_capture.interpreter.opcodes.branches.writing import branched
from dynamo_capture.semantics.operators.membership import contained
from dynamo_capture.semantics.tensors.content.conditions import negated
from dynamo_capture.values import NONE, SliceValue, TensorValue, boolean
from dynamo_capture.values.numbers.condition import DataCondition


@opcode("BINARY_OP")
def binary_op(frame: Frame, step: Step) -> None:
    stack = frame.stack
    rhs = stack.pop()
    lhs = stack.pop()
    frame.operands = (lhs, rhs)
    stack.append(frame.tx.operators.binary(step.argval, lhs, rhs))


@opcode("COMPARE_OP")
def compare_op(frame: Frame, step: Step) -> None:
    stack = frame.stack
    rhs = stack.pop()
    lhs = stack.pop()
    frame.operands = (lhs, rhs)
    result = frame.tx.operators.compare(step.argval, lhs, rhs)
    stack.append(result)
    if step.arg & RULES.compare_bool:  # what follows takes True and False only
        found = _assumed_by_next(frame)
        if found is None and _branched_by_next(frame):
            return
        stack[-1] = boolean(frame.tx.truth(result) if found is None else found)


@opcode("IS_OP")
def is_op(frame: Frame, step: Step) -> None:
    stack = frame.stack
    rhs = stack.pop()
    stack.append(boolean(frame.tx.operators.same(stack.pop(), rhs) != bool(step.arg)))


@opcode("CONTAINS_OP")
def contains_op(frame: Frame, step: Step) -> None:
    stack = frame.stack
    owner = stack.pop()
    frame.operands = (owner,)
    stack.append(contained(frame.tx, owner, stack.pop(), bool(step.arg)))


def _unary(frame: Frame, symbol: str) -> None:
    operand = frame.stack.pop()
    frame.operands = (operand,)
    frame.stack.append(frame.tx.operators.unary(symbol, operand))


def tested(frame: Frame) -> bool:
    """Pop a value; its truth."""
    operand = frame.stack.pop()
    frame.operands = (operand,)
    return frame.tx.truth(operand)


@opcode("UNARY_NEGATIVE")
def unary_negative(frame: Frame, step: Step) -> None:
    _unary(frame, "-")


@opcode("UNARY_POSITIVE", until=(3, 11))
def unary_positive(frame: Frame, step: Step) -> None:
    _unary(frame, "+")


@opcode("UNARY_INVERT")
def unary_invert(frame: Frame, step: Step) -> None:
    _unary(frame, "~")


@opcode("UNARY_NOT")
def unary_not(frame: Frame, step: Step) -> None:
    operand = frame.stack[-1]
    opposite = negated(frame.tx, operand) if isinstance(operand, DataCondition) else None
    if opposite is not None:
        frame.stack[-1] = opposite
        return
    frame.stack.append(boolean(not tested(frame)))


@opcode("TO_BOOL", since=(3, 13))
def to_bool(frame: Frame, step: Step) -> None:
    frame.stack[-1] = as_condition(frame.stack[-1])
    jump = frame.steps[frame.next]
    if jump.opname in _BRANCHES:
        if_true = jump.opname == "POP_JUMP_IF_TRUE"
        place = merged(frame, jump, frame.next + 1, if_true)
        if place is None:
            place = joined_copies(frame, jump, is_either=if_true)
        if place is None:
            place = joined_jumps(frame, jump, frame.next + 1, if_true)
        if place is not None:
            frame.next = place
            return
    found = _assumed_by_next(frame)
    if found is None:
        if _goes_on_by_next(frame) or _branched_by_next(frame):
            return
        found = tested(frame)
    else:
        frame.stack.pop()
    frame.stack.append(boolean(found))


_BRANCHES = ("POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE")


def _assumed_by_next(frame: Frame) -> bool | None:
    """The truth of the value on the stack, of which the next instruction is to take True or False: see ``assumed``."""
    jump = frame.steps[frame.next]
    if jump.opname not in _BRANCHES:
        return None
    return assumed(frame, jump, frame.next + 1, jump.opname == "POP_JUMP_IF_TRUE")


def _goes_on_by_next(frame: Frame) -> bool:
    """Whether the graph goes on where a tensor says that there are rows: see ``not_skipped``."""
    jump = frame.steps[frame.next]
    if jump.opname not in _BRANCHES or not isinstance(frame.stack[-1], TensorValue):
        return False
    place = not_skipped(frame, jump, frame.next + 1, jump.opname == "POP_JUMP_IF_TRUE")
    if place is None:
        return False
    frame.next = place
    return True


def _branched_by_next(frame: Frame) -> bool:
    """Whether the branch behind the next instruction has been done: see ``branched``."""
    jump = frame.steps[frame.next]
    return jump.opname in _BRANCHES and branched(
        frame, jump, frame.next + 1, jump.opname == "POP_JUMP_IF_TRUE"
    )


@opcode("BINARY_SLICE", since=(3, 12))
def binary_slice(frame: Frame, step: Step) -> None:
    owner, start, stop = frame.pop_n(3)
    frame.stack.append(owner.get_item(frame.tx, SliceValue((start, stop, NONE))))


@opcode("STORE_SLICE", since=(3, 12))
def store_slice(frame: Frame, step: Step) -> None:
    value, owner, start, stop = frame.pop_n(4)
    owner.set_item(frame.tx, SliceValue((start, stop, NONE)), value)
