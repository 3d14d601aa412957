"""``if`` without ``else`` on a tensor's content, around instructions that store in containers or call, and no more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from dynamo_capture.foundation.break_kinds import CONTENT_DECIDES
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.steps import Step
from dynamo_capture.semantics.regions.steered.written_branches import done_and_taken_back, may_be_written
from dynamo_capture.values import TensorValue, Value

_LONGEST: Final = 64
_PREFIXES: Final = ("LOAD_", "BUILD_", "BINARY_", "CALL", "UNARY_")
"""Of instructions that compute a value from others."""
_OTHERS: Final = frozenset(
    {
        "PUSH_NULL",
        "PRECALL",
        "KW_NAMES",
        "COMPARE_OP",
        "NOP",
        "COPY",
        "SWAP",
        "STORE_SUBSCR",
        "STORE_SLICE",
        "POP_TOP",
    }
)
"""Instructions that bind no name and go nowhere else."""
_JUMPS: Final = frozenset({"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"})


def branched(frame: Frame, step: Step, following: int, jumps_if: bool) -> bool:
    """Do the branch at ``following``, which the jump ``step`` skips where the truth of the value on the stack is
    ``jumps_if``, and go on behind it. False: it is another kind of branch, or its answer is known."""
    condition = frame.stack[-1]
    if (
        not isinstance(condition, TensorValue)
        or frame.is_generator
        or not may_be_written(frame.tx, condition)
    ):
        return False
    end = _end(frame.steps, following, step)
    if end is None:
        return False
    stack, place, line = frame.stack[:-1], frame.next, frame.line

    if not done_and_taken_back(
        frame.tx, condition, not jumps_if, lambda: run_steps(frame, stack, following, end)
    ):
        frame.stack[:] = [*stack, condition]
        frame.next, frame.line, frame.operands = place, line, (condition,)
        frame.tx.truth(condition)
        raise GraphBreak(CONTENT_DECIDES, "the truth of a tensor depends on its content")
    frame.next = step.target
    return True


def run_steps(frame: Frame, stack: Sequence[Value], first: int, end: int) -> None:
    """Run instructions up to, and without, ``end``, beginning with this on the stack."""
    frame.stack[:] = stack
    frame.next = first
    while frame.next != end:
        inner = frame.steps[frame.next]
        frame.next = inner.index + 1
        frame.line = inner.line
        inner.run(frame, inner)


def _end(steps: Sequence[Step], first: int, jump: Step) -> int | None:
    """The step at which the instructions of the branch have ended and go on where the jump leads; None: they may go
    elsewhere, or bind names."""

    def ends(place: int) -> bool:
        goes_there = steps[place].opname in _JUMPS and landing(steps, place) == landing(steps, jump.target)
        return place == jump.target or goes_there

    return end_of(steps[first : first + _LONGEST], jump, _OTHERS, ends)


def end_of(
    steps: Sequence[Step], jump: Step, others: Collection[str], ends: Callable[[int], bool]
) -> int | None:
    """The first of the instructions behind a jump that ``ends`` them, by its place; None where it is the first one, or
    one before it is none that computes a value nor one of the ``others``."""
    for step in steps:
        if ends(step.index):
            return step.index if step is not steps[0] else None
        if step.handler != jump.handler or not (step.opname.startswith(_PREFIXES) or step.opname in others):
            return None
    return None


def landing(steps: Sequence[Step], place: int) -> int:
    """Where instructions that only jump lead to."""
    for _ in range(4):
        if steps[place].opname not in _JUMPS:
            break
        place = steps[place].target
    return place
