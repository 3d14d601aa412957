"""The state of a frame at a graph break, written back so that Python can go on from there.

    prologue (graph call, side effects, locals, cells, stack) -> the instruction itself -> a resume function

The instruction runs in the original body, inside the user's ``try`` and ``with`` blocks; wherever it leads, an exit calls
the rest of the body as a function, which is captured in its turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType

from dynamo_capture.bytecode.assemble import assemble
from dynamo_capture.bytecode.control_flow import ControlFlow
from dynamo_capture.bytecode.decode import decode
from dynamo_capture.bytecode.depth import stack_depths
from dynamo_capture.bytecode.emit import Emitter
from dynamo_capture.bytecode.errors import UnsupportedBytecodeError
from dynamo_capture.bytecode.instruction import CodeBody, Instruction
from dynamo_capture.bytecode.liveness import live_variables
from dynamo_capture.bytecode.resume_code import NULL as NULL_SLOT
from dynamo_capture.bytecode.resume_code import VALUE, ResumeCodes, StackSlot
from dynamo_capture.bytecode.splice import emit_resume_call, splice
from dynamo_capture.emission import Emission
from dynamo_capture.frame import Frame
from dynamo_capture.graph_breaks import RunEagerly
from dynamo_capture.values.base import NULL, Value
from dynamo_capture.values.functions import CellValue

_CALL_GROUP = ("KW_NAMES", "PRECALL")
_PUSHES_UNKNOWN = ("LOAD_METHOD", "LOAD_GLOBAL", "LOAD_SUPER_ATTR")


def first_of_call(code: CodeType, index: int) -> int:
    """The instruction to enter at: a call's keyword names come before it."""
    instructions = decode(code).instructions
    while index > 0 and instructions[index - 1].opname in _CALL_GROUP:
        index -= 1
    return index


def last_of_call(instructions: Sequence[Instruction], index: int) -> int:
    """The call itself, given where it was entered."""
    while instructions[index].opname in _CALL_GROUP:
        index += 1
    return index


class Suspension:
    """Writes one break of ``frame`` before the instruction ``index``."""

    def __init__(self, frame: Frame, index: int, resumes: ResumeCodes) -> None:
        self.frame = frame
        self.index = index
        self.resumes = resumes
        self.body: CodeBody = decode(frame.code)
        instruction = self.body.instructions[last_of_call(self.body.instructions, index)]
        pushes_method = instruction.opname == "LOAD_ATTR" and instruction.arg & 1
        if instruction.opname in _PUSHES_UNKNOWN or pushes_method:
            raise RunEagerly(f"a break at {instruction.opname}")
        if frame.tracer.handled is not None:
            raise RunEagerly("a break while an exception is handled")
        live = live_variables(self.body)[index]
        self.locals = {
            name: value
            for name, value in frame.slots.items()
            if name in live and not isinstance(value, CellValue)
        }
        self.cells = {
            name: value
            for name, value in frame.slots.items()
            if isinstance(value, CellValue) and name in frame.code.co_cellvars
        }

    def values(self) -> list[Value]:
        """Everything that must be rebuilt."""
        contents = [cell.content for cell in self.cells.values() if cell.content is not None]
        return [*self.locals.values(), *contents, *(v for v in self.frame.stack if v is not NULL)]

    def emit(self, emission: Emission) -> None:
        """Leave locals, cells and stack as they are before the instruction."""
        e = emission.emitter
        emission.frame_cells = {id(cell): name for name, cell in self.cells.items()}
        places: list[tuple[str, str]] = []
        for name, value in self.locals.items():
            emission.value(value)
            places.append((emission.temporary(), name))
            e.store_fast(places[-1][0])
        contents: list[tuple[str, str]] = []
        for name, cell in self.cells.items():
            if cell.content is not None:
                emission.value(cell.content)
                contents.append((emission.temporary(), name))
                e.store_fast(contents[-1][0])
        stack: list[str | None] = []
        for value in self.frame.stack:
            if value is NULL:
                stack.append(None)
            else:
                emission.value(value)
                stack.append(emission.temporary())
                e.store_fast(str(stack[-1]))
        for temporary, name in places:
            e.load_fast(temporary)
            e.store_fast(name)
        for temporary, name in contents:
            e.load_fast(temporary)
            e.store_deref(name)
        for slot in stack:
            if slot is None:
                e.push_null()
            else:
                e.load_fast(slot)

    def assemble(self, emitter: Emitter) -> CodeType:
        """The replacement code; RunEagerly where the rest cannot become a function."""
        instructions = self.body.instructions
        call = last_of_call(instructions, self.index)
        kinds: list[StackSlot] = [NULL_SLOT if v is NULL else VALUE for v in self.frame.stack]
        depths = stack_depths(self.body)
        flow = ControlFlow(instructions)
        exits: dict[int, list[Instruction]] = {}
        unbound = [
            name for name in self.frame.code.co_varnames if name not in self.frame.slots
        ]
        try:
            for successor in flow.normal_successors(call):
                depth = depths[successor]
                assert depth is not None
                stack = (kinds + [VALUE] * depth)[:depth]
                if stack:
                    stack[-1] = VALUE if depth <= len(kinds) and depth != len(kinds) else stack[-1]
                written = _written(instructions[call])
                plan = self.resumes.make(
                    self.frame.code, successor, stack, unbound=[n for n in unbound if n not in written]
                )
                out = Emitter(instructions[call].position)
                emit_resume_call(out, plan, tail=self.resumes.is_resume_function(self.frame.code))
                exits[successor] = out.instructions
        except UnsupportedBytecodeError as error:
            raise RunEagerly(str(error)) from error
        body = splice(self.body, emitter.instructions, self.index, exits)
        return assemble(body)


def _written(instruction: Instruction) -> tuple[str, ...]:
    if instruction.opname.startswith("STORE_FAST"):
        return instruction.argval if isinstance(instruction.argval, tuple) else (str(instruction.argval),)
    return ()
