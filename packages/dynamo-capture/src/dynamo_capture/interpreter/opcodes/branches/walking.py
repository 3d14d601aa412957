"""The instructions of a branch: where they end, and running them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.steps import Step
from dynamo_capture.values import Value

_PREFIXES: Final = ("LOAD_", "BUILD_", "BINARY_", "CALL", "UNARY_")
"""Of instructions that compute a value from others."""
_JUMPS: Final = frozenset({"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"})


def run_steps(frame: Frame, stack: Sequence[Value], first: int, end: int) -> None:
    """Run instructions up to, and without, ``end``, beginning with this on the stack."""
    frame.stack[:] = stack
    frame.next = first
    while frame.next != end:
        inner = frame.steps[frame.next]
        frame.next = inner.index + 1
        frame.line = inner.line
        inner.run(frame, inner)


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
