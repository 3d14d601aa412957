"""A break inside an ``except`` or ``finally`` block of the outermost frame.

The exception that is being handled is part of the frame's state: ``sys.exc_info()``, a bare ``raise`` and the context
of further exceptions depend on it. So the replacement raises it, at the line where the program did, and catches it as
the program did; then it goes on in the block:

    y = x * 2            the graph
    e = ValueError()     made
    raise e              under a handler of the program's stack depth, which leads to PUSH_EXC_INFO
    print(y)             the instruction that broke, and the rest of the block, in Python
    return rest(y)       where control leaves the block, a resume function takes over
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import CodeType

from dynamo_capture.bytecode.control_flow import ControlFlow, past_loop_end
from dynamo_capture.bytecode.decoded import decoded
from dynamo_capture.bytecode.emit import Emitter
from dynamo_capture.bytecode.errors import UnsupportedBytecodeError
from dynamo_capture.bytecode.instruction import Instruction, Position
from dynamo_capture.bytecode.resume.analysis import StackSlot
from dynamo_capture.bytecode.resume.code import ResumeCodes
from dynamo_capture.codegen.bridges import resume_at
from dynamo_capture.codegen.held_objects import FrameLocals
from dynamo_capture.codegen.reconstruct import Reconstruction
from dynamo_capture.foundation.break_kinds import NOT_RESUMABLE
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.frames.frame import Frame, Handling
from dynamo_capture.runtime import replacement_calls, tracebacks
from dynamo_capture.values import NullValue, ObjectValue, Value

_TRACEBACK = ".traceback"
_DEPTH_AFTER = {"PUSH_EXC_INFO": 1, "POP_EXCEPT": -1}
_NEVER_RAISE = frozenset({"PUSH_EXC_INFO", "POP_EXCEPT", "COPY", "POP_TOP", "NOP"})
"""What leaves a handler is protected by the next outer one, and would seem to come to it with its own exception."""


class HandlingStack:
    """The stack of a frame that handles exceptions: made like any other, kept in locals while the replacement does what
    else it has to do, and put in place last, by instructions that cannot fail."""

    def __init__(self, to: Reconstruction, frame: Frame) -> None:
        self._to = to
        self._frame = frame
        for exception in frame.exceptions:
            _check(exception)

    def make(self) -> None:
        """Leave nothing on the stack."""
        for number, value in enumerate((*self._frame.stack, *self._frame.exceptions)):
            if type(value) is not NullValue:
                self._to.push(value)
                self._to.emitter.store_fast(f".held{number}")

    def put(self) -> None:
        """Put the stack in place, the frame's exceptions being handled."""
        frame, emitter = self._frame, self._to.emitter
        first = len(frame.stack)
        position = 0
        for number, caught in enumerate(frame.handling):
            self._load(range(position, caught.depth))
            self._raise(f".held{first + number}", caught)
            position = caught.depth + caught.lasti + 1  # what was handled before is restored from there
            if position < first and frame.stack[position] is frame.exceptions[number]:
                position += 1
            else:  # the block has bound it to a name, or dropped it
                emitter.pop_top()
        self._load(range(position, first))
        for number, value in enumerate((*frame.stack, *frame.exceptions)):
            if type(value) is not NullValue:
                emitter.delete_fast(f".held{number}")

    def _raise(self, name: str, caught: Handling) -> None:
        """Raise an exception and handle it; it keeps the traceback that it has, but for this frame's own entry."""
        to, emitter = self._to, self._to.emitter

        def arguments() -> None:
            emitter.load_fast(name)
            emitter.load_fast(_TRACEBACK)

        to.call(tracebacks.traceback_of, lambda: emitter.load_fast(name))
        emitter.store_fast(_TRACEBACK)
        raising = decoded(self._frame.code).body.instructions[caught.step]
        _raise(emitter, name, caught, raising.position)
        to.call(tracebacks.show_frame, arguments, 2)
        emitter.pop_top()
        emitter.delete_fast(_TRACEBACK)

    def _load(self, places: Iterable[int]) -> None:
        for place in places:
            if type(self._frame.stack[place]) is NullValue:
                self._to.emitter.push_null()
            else:
                self._to.emitter.load_fast(f".held{place}")


def _check(exception: Value) -> None:
    """That an exception which the trace has made can be made again."""
    if isinstance(exception, ObjectValue) and exception.real is None:
        try:
            replacement_calls.new_object(exception.cls)
        except TypeError:
            reason = f"{exception.cls.__name__} is handled, which cannot be made in parts"
            raise GraphBreak(NOT_RESUMABLE, reason) from None


def _raise(emitter: Emitter, name: str, caught: Handling, position: Position) -> None:
    handler, before = emitter.label(), emitter.position
    emitter.position = (
        position  # without a line, as instructions that raise again are: that of the traceback counts
    )
    with emitter.protected(handler, caught.depth, push_lasti=caught.lasti):
        emitter.load_fast(name)
        emitter.raise_value()
    emitter.place(handler)
    emitter.emit("PUSH_EXC_INFO")
    emitter.position = before


def exits_of_handler(
    code: CodeType,
    index: int,
    before: Sequence[StackSlot],
    variables: FrameLocals,
    resumes: ResumeCodes,
    *,
    handled: int,
    tail: bool,
) -> dict[int, list[Instruction]]:
    """Where control leaves the blocks that handle ``handled`` exceptions, instruction ``index`` being in them: into
    resume functions. ``before`` is the stack below the outermost of them, ``variables`` the locals."""
    facts = decoded(code)
    body, flow = facts.body, facts.flow
    block, leaving = _block(flow, index, handled)

    def exit_at(place: int) -> list[Instruction]:
        return resume_at(code, place, before, variables, block, resumes, tail=tail)

    places: set[int] = set()
    pending = list(leaving)
    while pending:
        place = past_loop_end(body.instructions, pending.pop())
        if place in places or place in block or body.instructions[place].opname.startswith("RETURN"):
            continue
        try:
            exit_at(place)
            places.add(place)
        except UnsupportedBytecodeError:  # the end of a ``with`` block takes the manager's method away
            block.add(place)
            pending.extend(flow.successors[place])
    return {place: exit_at(place) for place in sorted(places)}


def _block(flow: ControlFlow, index: int, handled: int) -> tuple[set[int], set[int]]:
    """The instructions of the blocks, and those to which control goes from there without an exception."""
    depths = _depths(flow)
    outside = depths[index] - handled
    seen: set[int] = set()
    leaving: set[int] = set()
    pending = [index]
    while pending:
        at = pending.pop()
        if at in seen:
            continue
        seen.add(at)
        handler = flow.handlers[at]
        if handler is not None and depths.get(handler, outside) > outside and _may_handle(flow, at, handler):
            pending.append(handler)
        following = flow.successors[at]
        if depths[at] + _DEPTH_AFTER.get(flow.instructions[at].opname, 0) == outside:
            leaving.update(following)
        else:
            pending.extend(following)
    return seen, leaving


def _may_handle(flow: ControlFlow, at: int, handler: int) -> bool:
    return (
        flow.instructions[at].opname not in _NEVER_RAISE
        and flow.instructions[handler].opname == "PUSH_EXC_INFO"
    )


def _depths(flow: ControlFlow) -> dict[int, int]:
    """How many exceptions are handled where each instruction begins. Between a handler's end and the exception that it
    passes on may stand what cannot raise, and seems to come to the next outer handler with more: the least holds."""
    least = {0: 0}
    pending = [0]
    while pending:
        at = pending.pop()
        depth, opname, handler = least[at], flow.instructions[at].opname, flow.handlers[at]
        after = max(0, depth + _DEPTH_AFTER.get(opname, 0))
        reached = [(place, after) for place in flow.successors[at]]
        if handler is not None and opname not in _NEVER_RAISE:
            reached.append((handler, depth))
        for place, found in reached:
            if found < least.get(place, found + 1):
                least[place] = found
                pending.append(place)
    return least
