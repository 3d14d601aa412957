"""Jumps, returns and yields."""

from __future__ import annotations

from typing import Any, Final

from dynamo_capture.foundation.errors import UserRaise
from dynamo_capture.frames.frame import Frame, Return, Yield
from dynamo_capture.frames.generator_values import GeneratorValue
from dynamo_capture.frames.opcode_table import opcode
from dynamo_capture.frames.steps import Step
from dynamo_capture.interpreter.opcodes.branches.assuming import assumed
from dynamo_capture.interpreter.opcodes.branches.joining import joined_copies, joined_jumps, joined_values
from dynamo_capture.interpreter.opcodes.branches.merging import as_condition, merged
from dynamo_capture.interpreter.opcodes.branches.skipping import not_skipped
from dynamo_capture.interpreter.opcodes.branches.writing import branched
from dynamo_capture.interpreter.opcodes.dropping import check_returned
from dynamo_capture.interpreter.opcodes.operating import tested
from dynamo_capture.values import NONE, IteratorStop, IteratorValue, SymValue, TensorValue
from dynamo_capture.values.numbers.condition import DataCondition

_OF_ROWS: Final = (DataCondition, SymValue, TensorValue)
"""What may say whether there are rows."""


@opcode("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
def jump(frame: Frame, step: Step) -> None:
    frame.next = step.target


@opcode("POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_TRUE", until=(3, 11))
@opcode("POP_JUMP_IF_TRUE", since=(3, 12))
def pop_jump_if_true(frame: Frame, step: Step) -> None:
    _jump_if(frame, step, True)


@opcode("POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_FALSE", until=(3, 11))
@opcode("POP_JUMP_IF_FALSE", since=(3, 12))
def pop_jump_if_false(frame: Frame, step: Step) -> None:
    _jump_if(frame, step, False)


def _jump_if(frame: Frame, step: Step, truth: bool) -> None:
    frame.stack[-1] = as_condition(frame.stack[-1])
    place = merged(frame, step, frame.next, truth)
    if place is None:
        place = joined_copies(frame, step, is_either=truth)
    if place is None:
        place = joined_jumps(frame, step, frame.next, truth)
    if place is None and type(frame.stack[-1]) in _OF_ROWS:
        place = not_skipped(frame, step, frame.next, truth)
    if place is not None:
        frame.next = place
        return
    found = assumed(frame, step, frame.next, truth)
    if found is None:
        if branched(frame, step, frame.next, truth):
            return
        found = tested(frame)
    else:
        frame.stack.pop()
    if found is truth:
        frame.next = step.target


@opcode("POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_BACKWARD_IF_NONE", until=(3, 11))
@opcode("POP_JUMP_IF_NONE", since=(3, 12))
def pop_jump_if_none(frame: Frame, step: Step) -> None:
    if frame.tx.operators.same(frame.stack.pop(), NONE):
        frame.next = step.target


@opcode("POP_JUMP_FORWARD_IF_NOT_NONE", "POP_JUMP_BACKWARD_IF_NOT_NONE", until=(3, 11))
@opcode("POP_JUMP_IF_NOT_NONE", since=(3, 12))
def pop_jump_if_not_none(frame: Frame, step: Step) -> None:
    if not frame.tx.operators.same(frame.stack.pop(), NONE):
        frame.next = step.target


@opcode("JUMP_IF_TRUE_OR_POP", until=(3, 11))
def jump_if_true_or_pop(frame: Frame, step: Step) -> None:
    place = joined_values(frame, step, is_either=True)
    if place is not None:
        frame.next = place
    elif frame.tx.truth(frame.stack[-1]):
        frame.next = step.target
    else:
        frame.stack.pop()


@opcode("JUMP_IF_FALSE_OR_POP", until=(3, 11))
def jump_if_false_or_pop(frame: Frame, step: Step) -> None:
    place = joined_values(frame, step, is_either=False)
    if place is not None:
        frame.next = place
    elif frame.tx.truth(frame.stack[-1]):
        frame.stack.pop()
    else:
        frame.next = step.target


@opcode("RETURN_VALUE")
def return_value(frame: Frame, step: Step) -> Any:
    check_returned(frame, frame.stack[-1])
    return Return(frame.stack.pop())


@opcode("RETURN_CONST", since=(3, 12))
def return_const(frame: Frame, step: Step) -> Any:
    check_returned(frame, step.argval)
    return Return(step.argval)


@opcode("RETURN_GENERATOR")
def return_generator(frame: Frame, step: Step) -> None:
    """The inliner runs a generator's entry itself."""


@opcode("YIELD_VALUE")
def yield_value(frame: Frame, step: Step) -> Any:
    return Yield(frame.stack.pop())


@opcode("GET_YIELD_FROM_ITER")
def get_yield_from_iter(frame: Frame, step: Step) -> None:
    frame.stack.append(frame.stack.pop().iterate(frame.tx))


@opcode("SEND")
def send(frame: Frame, step: Step) -> None:
    tx = frame.tx
    value = frame.stack.pop()
    receiver = frame.stack[-1]
    tx.effects.advances(receiver)
    try:
        if isinstance(receiver, GeneratorValue):
            item = receiver.send(tx, value)
        elif isinstance(receiver, IteratorValue) and value.stands_for(None):
            item = receiver.next(tx)
        else:
            item = receiver.call_method(tx, "send", [value], {})
    except IteratorStop as stop:
        frame.end_delegation(step, stop.value if stop.value is not None else NONE)
        return
    except UserRaise as raised:
        if not issubclass(raised.value.python_type(), StopIteration):
            raise
        frame.end_delegation(step, raised.value.get_attr(tx, "value"))
        return
    frame.stack.append(item)


@opcode("END_SEND", since=(3, 12))
def end_send(frame: Frame, step: Step) -> None:
    value = frame.stack.pop()
    frame.stack[-1] = value


@opcode("CLEANUP_THROW", since=(3, 12))
def cleanup_throw(frame: Frame, step: Step) -> None:
    """Stack: receiver, sent value, what was thrown at the ``yield`` of a ``yield from``."""
    _, _, raised = frame.pop_n(3)
    if not issubclass(raised.python_type(), StopIteration):
        raise UserRaise(raised)
    frame.stack.extend((NONE, raised.get_attr(frame.tx, "value")))
