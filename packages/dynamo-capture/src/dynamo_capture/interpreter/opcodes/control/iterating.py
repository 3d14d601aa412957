"""Loops."""

from __future__ import annotations

import sys
from typing import Final

from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.left_functions import check_loop_not_left, leave_loop_of_data
from dynamo_capture.frames.opcode_table import opcode
from dynamo_capture.frames.steps import Step
from dynamo_capture.interpreter.opcodes.branches.going_over import over_all_places
from dynamo_capture.values import NULL, IteratorStop, IteratorValue, ObjectIterator, TensorValue
from dynamo_capture.values.containers.late_sequences import NumberList
from dynamo_capture.values.containers.ranges import SymRange

_OF_PLACES: Final = (TensorValue, NumberList)
"""What may hold the places where a mask is true."""


@opcode("GET_ITER")
def get_iter(frame: Frame, step: Step) -> None:
    check_loop_not_left(frame, step.index)
    owner = frame.stack.pop()
    if isinstance(owner, SymRange):
        leave_loop_of_data(frame.tx)
    frame.operands = (owner,)
    places = over_all_places(frame, step, owner) if type(owner) in _OF_PLACES else None
    frame.stack.append(owner.iterate(frame.tx) if places is None else places)


@opcode("FOR_ITER")
def for_iter(frame: Frame, step: Step) -> None:
    check_loop_not_left(frame, step.index)
    iterator = frame.stack[-1]
    if not isinstance(iterator, IteratorValue):
        iterator = frame.stack[-1] = ObjectIterator(iterator)
    frame.operands = (iterator,)
    frame.tx.effects.advances(iterator)
    try:
        frame.stack.append(iterator.next(frame.tx))
    except IteratorStop:
        if sys.version_info < (3, 12):
            frame.stack.pop()
        else:
            frame.stack.append(NULL)
        frame.next = step.target
