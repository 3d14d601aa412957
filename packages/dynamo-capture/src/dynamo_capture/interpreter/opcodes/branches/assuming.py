"""A branch that only data decide, where one side raises: the graph goes on with the other side.

A check in the graph sees to it. Where it fails, the frame runs once more as it is, so that Python itself takes the side
that raises (or, where the program goes on after all, whatever follows).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.steps import Step
from dynamo_capture.semantics.tensors.content.data_numbers import assume, truth_of
from dynamo_capture.values import TensorValue
from dynamo_capture.values.numbers.condition import DataCondition

_LONGEST: Final = 64
"""Instructions that may make an exception."""

_PREFIXES: Final = ("LOAD_", "BUILD_", "FORMAT_", "BINARY_", "CALL", "UNARY_")
_OTHERS: Final = frozenset(
    {"PUSH_NULL", "PRECALL", "KW_NAMES", "COMPARE_OP", "CONVERT_VALUE", "NOP", "COPY", "SWAP", "LIST_EXTEND"}
)
"""Instructions that make an exception and its message, and neither jump nor store."""


def assumed(frame: Frame, step: Step, following: int, jumps_if: bool) -> bool | None:
    """The truth of the value on the stack that leads past an exception; None where it is not so, or known.

    ``step`` is the jump, taken where the truth is ``jumps_if``; ``following`` is where it leads otherwise.
    """
    condition = frame.stack[-1]
    if type(condition) is not DataCondition and not isinstance(condition, TensorValue):
        return None
    jump_raises = _raises(frame.steps, step.target)
    if jump_raises is _raises(frame.steps, following):
        return None
    holds = jumps_if is not jump_raises
    if isinstance(condition, TensorValue):
        tx = frame.tx
        if condition.content is not None or tx.output.lasts or tx.tensors.followed.of(condition):
            return None
        known = truth_of(tx, condition)
        if known is None:
            return None
        condition = known
    if not holds and len(condition.relations) > 1:
        return None
    for relation in condition.relations:
        assume(frame.tx, relation if holds else relation.negated())
    return holds


def _raises(steps: Sequence[Step], place: int) -> bool:
    """Whether the instructions from here do nothing but raise an exception."""
    for step in steps[place : place + _LONGEST]:
        if step.opname == "RAISE_VARARGS":
            return True
        if not step.opname.startswith(_PREFIXES) and step.opname not in _OTHERS:
            return False
    return False
