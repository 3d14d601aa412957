"""Symbolic frames: a stack, variables and a place in the code; the loop that runs them."""

from __future__ import annotations

from types import CodeType
from typing import NamedTuple

from dynamo_capture.foundation.break_kinds import (
    CONTENT_DECIDES,
    DATA_NUMBER,
    EMPTY_CELL,
    TOO_MANY_INSTRUCTIONS,
    UNKNOWN_VALUE,
)
from dynamo_capture.foundation.break_positions import Standing, Stop, Stopped
from dynamo_capture.foundation.errors import DataDependent, GraphBreak, NotConstant, UserRaise, forget_frames
from dynamo_capture.frames import tracebacks
from dynamo_capture.frames.globals_scope import GlobalsScope
from dynamo_capture.frames.steps import PreparedCode, Step
from dynamo_capture.values import (
    CellValue,
    Const,
    Value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.traceback import FrameValue
from fx_interface.errors import UnbackedSymbolError, UserLocation


class Return:
    """What a frame's loop gives back when the frame returned."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


class Yield:
    """What a frame's loop gives back when the frame yielded."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


class Handling(NamedTuple):
    """An exception that a frame handles: how high the stack was where it was caught, whether the interpreter keeps
    there which instruction raised, and that instruction's index."""

    depth: int
    lasti: bool
    step: int


class Frame:
    """One call: variables by name (cells for shared ones), a value stack, the next step."""

    __slots__ = (
        "callee",
        "caught",
        "code",
        "exceptions",
        "globals",
        "handling",
        "is_generator",
        "kw_names",
        "line",
        "location",
        "made",
        "names",
        "next",
        "operands",
        "raised",
        "rounds",
        "shown",
        "stack",
        "steps",
        "tx",
        "variables",
    )

    def __init__(
        self, tx: Context, prepared: PreparedCode, scope: GlobalsScope, variables: dict[str, Value]
    ) -> None:
        self.tx = tx
        self.code: CodeType = prepared.code
        self.steps = prepared.steps
        self.globals = scope
        self.variables = variables
        self.stack: list[Value] = []
        self.next = 0
        self.line: int | None = prepared.code.co_firstlineno
        self.location: UserLocation | None = None  # of the line that was asked for last
        self.exceptions: list[Value] = []
        self.handling: list[Handling] = []
        self.caught = Handling(0, False, 0)
        self.raised: tuple[tuple[Value, int], ...] = ()
        self.kw_names: tuple[str, ...] = ()
        self.is_generator = prepared.is_generator
        self.callee: Value | None = None
        self.operands: tuple[Value, ...] = ()
        self.made: Value | None = None
        self.rounds: dict[int, int] = {}  # how often a jump was taken to have rows
        self.shown: FrameValue | None = None
        self.names: dict[str, Value] | None = None
        """What the body of a class, or text for ``eval``, has for variables."""

    def run(self) -> Return | Yield:
        """Execute until the frame returns or yields; UserRaise leaves it."""
        tx = self.tx
        frames = tx.frames
        frames.append(self)
        steps = self.steps
        run = tx.runs = tx.runs + 1
        is_stopped = tx.stop is not None and tx.stop.run == run
        stop = tx.stop.steps if tx.stop is not None and is_stopped else MOST_STEPS
        count = 0
        step = steps[self.next]
        try:
            if tx.steps > MOST_STEPS:
                raise too_long()
            while True:
                step = steps[self.next]
                try:
                    while True:
                        if count == stop:
                            if is_stopped:
                                raise Stopped(list(frames))
                            raise too_long()
                        count += 1
                        self.next = step.index + 1
                        self.line = step.line
                        done = step.run(self, step)
                        if done is not None:
                            return done  # type: ignore[no-any-return]
                        step = steps[self.next]
                except UserRaise as raised:
                    self.unwind(step, raised)
        except (GraphBreak, NotConstant, DataDependent, UnbackedSymbolError) as error:
            reason = break_of(error)
            if reason.where is None:
                reason.where = tx.line_of_user()
            reason.trail.append(Standing(self, step, Stop(run, count - 1)))
            raise reason from None
        finally:
            tx.steps += count
            frames.pop()

    def unwind(self, step: Step, raised: UserRaise) -> None:
        """Go on at the handler of the step that raised; without one, the exception leaves the frame."""
        self.tx.asking.raised(raised.value)
        tracebacks.note(self, step, raised.value)
        if step.handler < 0:
            try:
                raise raised
            finally:
                del raised  # its traceback leads to this frame, which must not lead back to it
        forget_frames(raised)
        del self.stack[step.depth :]
        self.caught = Handling(step.depth, step.lasti, self._raising(step, raised.value))
        if step.lasti:
            self.stack.append(Const(step.index))
        self.stack.append(raised.value)
        self.next = step.handler

    def _raising(self, step: Step, raised: Value) -> int:
        """The instruction of this frame that an exception's traceback shows: raising it again, as the end of a
        ``finally`` or ``with`` block does, leaves that as it was."""
        if step.opname == "RERAISE" or (step.opname == "RAISE_VARARGS" and step.arg == 0):
            for value, index in reversed(self.raised):
                if value is raised:
                    return index
        self.raised = (*self.raised, (raised, step.index))
        return step.index

    def end_delegation(self, send: Step, value: Value) -> None:
        """Go on after a ``yield from`` whose SEND is ``send``; ``value`` is its result."""
        if self.steps[send.target].opname == "END_SEND":
            self.stack.append(value)
        else:
            self.stack[-1] = value
        self.next = send.target

    def cell(self, name: str) -> CellValue:
        """The cell of a shared variable."""
        found = self.variables.get(name)
        if not isinstance(found, CellValue):
            raise GraphBreak(EMPTY_CELL, f"the variable {name!r} is no cell")
        return found

    def pop_n(self, count: int) -> list[Value]:
        """The top ``count`` values, lowest first."""
        if count == 0:
            return []
        taken = self.stack[-count:]
        del self.stack[-count:]
        return taken


MOST_STEPS = 3_000_000
"""How many instructions are traced at once: a loop that waits for the outside would never end."""


def too_long() -> GraphBreak:
    """The break of a trace that has become too long."""
    return GraphBreak(TOO_MANY_INSTRUCTIONS, f"more than {MOST_STEPS} instructions in one graph")


def break_of(error: GraphBreak | NotConstant | DataDependent | UnbackedSymbolError) -> GraphBreak:
    """The graph break for what an instruction could not know."""
    if isinstance(error, GraphBreak):
        return error
    if isinstance(error, DataDependent):
        return GraphBreak(CONTENT_DECIDES, str(error) or "a tensor's content decides")
    if isinstance(error, UnbackedSymbolError):
        return GraphBreak(DATA_NUMBER, error.what)
    unknown = error.args[0] if error.args else None
    what = unknown.describe() if isinstance(unknown, Value) else "a value"
    return GraphBreak(UNKNOWN_VALUE, f"{what} is not known while tracing")
