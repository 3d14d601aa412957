"""The two sides of an ``if``: where they come together, and what one of them does to the frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dynamo_capture.bytecode.decoded import decoded
from dynamo_capture.foundation.break_kinds import DATA_NUMBER
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.steps import Step
from dynamo_capture.interpreter.opcodes.branches.skipping import (
    ALWAYS,
    MOST_STEPS,
    left_as_it_is,
    names_set,
    run_to,
)
from dynamo_capture.interpreter.opcodes.branches.walking import landing
from dynamo_capture.values import TensorValue, Value


class Outcome:
    """What a side leaves behind: the local variables that it ``sets``, and a value on ``top`` of the stack; the tensors
    that it has ``made`` itself."""

    __slots__ = ("made", "sets", "top")

    def __init__(self, sets: dict[str, Value], top: Value | None, made: list[TensorValue]) -> None:
        self.sets = sets
        self.top = top
        self.made = made

    def __bool__(self) -> bool:
        return self.top is not None or bool(self.sets)

    def values(self) -> list[Value]:
        return [*self.sets.values(), *([] if self.top is None else [self.top])]


class Side:
    """The instructions from ``first`` until control comes to ``meeting``, done where the answer is ``holds``.
    ``names``: the local variables that they may set."""

    __slots__ = ("first", "frame", "holds", "meeting", "names", "stack")

    def __init__(self, frame: Frame, first: int, meeting: int, holds: bool, names: frozenset[str]) -> None:
        self.frame = frame
        self.stack = frame.stack[:-1]
        self.first = first
        self.meeting = meeting
        self.holds = holds
        self.names = names

    @property
    def is_empty(self) -> bool:
        return landing(self.frame.steps, self.first) == self.meeting

    def run(self) -> Outcome:
        """Do it, and leave the frame as it was; a graph break where it leaves something else behind."""
        frame, graph = self.frame, self.frame.tx.output.graph
        last = next(reversed(graph.nodes), None)
        with left_as_it_is(frame):
            run_to(frame, self.stack, self.first, self.meeting)
            depth = len(self.stack)
            is_as_before = list(map(id, frame.stack[:depth])) == list(map(id, self.stack))
            if not is_as_before or len(frame.stack) > depth + 1:
                raise GraphBreak(DATA_NUMBER, "a branch leaves something behind")
            sets = {name: frame.variables[name] for name in self.names if name in frame.variables}
            top = frame.stack[depth] if len(frame.stack) > depth else None
        new = set()
        for node in reversed(graph.nodes):
            if node is last:
                break
            new.add(node)
        left = [*sets.values(), *([] if top is None else [top])]
        return Outcome(sets, top, [one for one in left if isinstance(one, TensorValue) and one.node in new])


def sides_of(frame: Frame, step: Step, following: int, jumps_if: bool) -> tuple[int, list[Side]] | None:
    """Where both sides of a jump come together, and the sides; None where they do not, or do what no branch may do.
    ``step`` is taken where the truth of the value on the stack is ``jumps_if``; ``following`` is where it leads
    otherwise."""
    for place in _meetings(frame.steps, step, following):
        meeting, sides = landing(frame.steps, place), list[Side]()
        for first, holds in ((following, not jumps_if), (step.target, jumps_if)):
            is_empty = landing(frame.steps, first) == meeting
            names = frozenset[str]() if is_empty else names_set(frame, first, meeting, step.handler)
            if names is not None:
                sides.append(Side(frame, first, meeting, holds, names))
        if len(sides) == 2:
            return place, [side for side in sides if not side.is_empty]
    return None


def _meetings(steps: Sequence[Step], step: Step, following: int) -> Iterator[int]:
    """Where the sides may come together: behind the ``if`` without ``else``, behind ``else``, at the head of a loop."""
    seen = set()
    for place in (step.target, following, *_jumps(steps, step, following)):
        if landing(steps, place) not in seen:
            seen.add(landing(steps, place))
            yield place


def _jumps(steps: Sequence[Step], step: Step, following: int) -> Iterator[int]:
    """Where the instructions behind a jump lead, up to the end of the loop that it is in."""
    for one in steps[following : following + MOST_STEPS]:
        if one.opname in ALWAYS:
            yield one.target
            if one.index >= step.target and one.target <= step.index:
                break


def read_behind(frame: Frame, side: Side) -> frozenset[str]:
    """The variables of a side that are read where both have come together."""
    return side.names & decoded(frame.code).live[side.meeting]
