"""``if`` without ``else`` that data alone decide, around instructions that write to tensors, and set no variable that
is read behind them."""

from __future__ import annotations

from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.steps import Step
from dynamo_capture.interpreter.opcodes.branches.skipping import left_as_it_is, run_branch, stored_names
from dynamo_capture.interpreter.opcodes.branches.walking import landing
from dynamo_capture.semantics.regions.steered.written_branches import done_and_taken_back, may_be_written


def branched(frame: Frame, step: Step, following: int, jumps_if: bool) -> bool:
    """Do the branch at ``following``, which the jump ``step`` skips where the truth of the value on the stack is
    ``jumps_if``, or the one that it leads to, which is skipped otherwise, and go on behind it. False: it is another
    kind of branch, or its answer is known."""
    tx, condition = frame.tx, frame.stack[-1]
    if frame.is_generator or not may_be_written(tx, condition):
        return False
    first, past, truth = following, step.target, not jumps_if
    if (
        landing(frame.steps, following) != following
    ):  # at the end of a loop: CPython 3.12 has no jump back on a truth
        first, past, truth = step.target, following, jumps_if
    meeting = landing(frame.steps, past)
    names = stored_names(frame, first, meeting, step.handler)
    if names is None:
        return False
    stack = frame.stack[:-1]

    def run() -> None:
        run_branch(frame, stack, [], first, meeting, names)

    def tried() -> None:
        with left_as_it_is(frame):
            run()

    if not done_and_taken_back(tx, condition, truth, tried, run):
        return False
    frame.next = past
    return True
