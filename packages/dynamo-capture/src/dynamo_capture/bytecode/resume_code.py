"""Resume functions: the rest of a body, from one instruction on, as an ordinary function of the frame's state there.

    resumes = ResumeCodes()                                    # owns the memo
    plan = resumes.make(code, index, stack=(VALUE, NULL))      # index into decode(code).instructions
    plan.code          # code object: positional parameters as plan.parameters, free variables as plan.freevars
    plan.parameters    # what to pass, in order: Parameter("stack", 0) | Parameter("local", "x")
    plan.freevars      # names of the cells to close over, in order: the original's cells and free variables

``stack`` describes the value stack before the instruction, bottom first. A VALUE is passed as a parameter; a NULL is
pushed by the resume function itself (an unfinished call, a cleared comprehension variable). The unfinished loop's
iterator, a ``with`` block's exit function and the exception that a handler had saved are values like any other. Live
locals are parameters; ``unbound`` names those that hold no value there (those that cannot hold one are left out
anyway), ``keep`` those to pass although the rest does not read them. The place after a ``for`` loop may be given by
the FOR_ITER's target. Exception handlers of the rest protect the resume function as they did the original, at the
same depths.

A place in a resume function is traced back to the original's: resuming the same place again (a break in a loop)
gives the same code object. Refused with UnsupportedBytecodeError: generators (CAP102), places that are unreachable
or where the stack holds an instruction offset, which means nothing in other code (CAP103: clean-up after an
exception in ``with`` or a handler), or a comprehension has put away a cell of the function (CAP103), a ``stack`` of
the wrong length (CAP105).

``super()`` without arguments reads the frame's first slot: where the rest may do that, the original's first argument
is the resume function's first parameter.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from types import CodeType
from typing import Literal, NamedTuple

from dynamo_capture.bytecode.assemble import assemble_with_offsets
from dynamo_capture.bytecode.control_flow import ControlFlow, past_loop_end, without_unreachable
from dynamo_capture.bytecode.decode import decode
from dynamo_capture.bytecode.depth import stack_depths, stack_effect
from dynamo_capture.bytecode.emit import Emitter, function_prologue
from dynamo_capture.bytecode.errors import UnsupportedBytecodeError
from dynamo_capture.bytecode.instruction import (
    CO_NESTED,
    CO_NEWLOCALS,
    CO_OPTIMIZED,
    CodeBody,
    Instruction,
)
from dynamo_capture.bytecode.liveness import assigned_variables, displaced_cells, live_variables


class StackSlot(Enum):
    """What a place on the value stack holds."""

    VALUE = "value"
    NULL = "null"


VALUE, NULL = StackSlot.VALUE, StackSlot.NULL


class Parameter(NamedTuple):
    """One argument of a resume function: a stack slot, counted from the bottom, or a variable of the frame.

    A variable of kind "cell" is passed by its content (it is a cell in the frame, and a first argument of
    ``super()``).
    """

    kind: Literal["stack", "local", "cell"]
    which: int | str


@dataclass(frozen=True, slots=True, eq=False)
class ResumePlan:
    """A resume function's code and what to call it with."""

    code: CodeType
    parameters: tuple[Parameter, ...]
    freevars: tuple[str, ...]
    stack: tuple[StackSlot, ...]


class _Place(NamedTuple):
    """An instruction of an original body, which resume functions of it lead back to."""

    code: CodeType
    position: int


class ResumeCodes:
    """Makes resume functions and remembers them, one for each place, stack and choice of locals."""

    def __init__(self) -> None:
        self._plans: dict[object, ResumePlan] = {}
        self._origins: dict[int, tuple[CodeType, dict[int, _Place]]] = {}
        """id of a resume function's code -> the code (kept alive) and, by byte offset, the place it came from."""
        self._analyses: dict[int, _Analysis] = {}

    def make(
        self,
        code: CodeType,
        index: int,
        stack: Sequence[StackSlot] = (),
        *,
        unbound: Collection[str] = (),
        keep: Collection[str] = (),
    ) -> ResumePlan:
        """The resume function for instruction ``index`` of ``decode(code)``; see the module's text."""
        code, index = self.origin(code, index)
        analysis = self._analysis(code)
        index = past_loop_end(analysis.body.instructions, index)
        analysis.check(index, stack)
        passed = analysis.passed_locals(index, unbound, keep)
        key = (id(code), index, tuple(stack), passed)
        if key not in self._plans:
            self._plans[key] = self._build(analysis, index, tuple(stack), passed)
        return self._plans[key]

    def origin(self, code: CodeType, index: int) -> tuple[CodeType, int]:
        """The original code and instruction that a place stands for; itself if ``code`` is no resume function."""
        if id(code) not in self._origins:
            return code, index
        instructions = self._analysis(code).body.instructions
        place = self._origins[id(code)][1].get(instructions[index].offset)
        return (code, index) if place is None else (place.code, place.position)

    def is_resume_function(self, code: CodeType) -> bool:
        """Whether this object made ``code``."""
        return id(code) in self._origins

    def clear(self) -> None:
        """Forget everything."""
        self._plans.clear()
        self._origins.clear()
        self._analyses.clear()

    def _analysis(self, code: CodeType) -> _Analysis:
        if id(code) not in self._analyses:
            self._analyses[id(code)] = _Analysis(code)
        return self._analyses[id(code)]

    def _build(
        self, analysis: _Analysis, index: int, stack: tuple[StackSlot, ...], passed: tuple[str, ...]
    ) -> ResumePlan:
        body, twins = analysis.body.clone_with_map()
        freevars = (*body.cellvars, *body.freevars)
        parameters = _parameters(analysis, stack, passed)
        names = [_parameter_name(parameter, freevars) for parameter in parameters]
        start = _entry(parameters, names, stack, freevars, twins[analysis.body.instructions[index]])
        body.instructions = without_unreachable([*start, *body.instructions])
        body.varnames, body.cellvars, body.freevars = names, [], list(freevars)
        body.argcount, body.posonlyargcount, body.kwonlyargcount = len(names), 0, 0
        body.flags = CO_OPTIMIZED | CO_NEWLOCALS | (CO_NESTED if freevars else 0) | body.flags & _KEPT_FLAGS
        body.consts = (None,)
        code, offsets = assemble_with_offsets(body)
        places = {
            offsets[twins[old]]: _Place(analysis.code, position)
            for position, old in enumerate(analysis.body.instructions)
            if twins[old] in offsets
        }
        self._origins[id(code)] = (code, places)
        return ResumePlan(code, parameters, freevars, stack)


_KEPT_FLAGS = 0x01FF0000
"""``from __future__`` flags."""


def _parameter_name(parameter: Parameter, freevars: Sequence[str]) -> str:
    """The name of a resume function's argument: the variable's own where it has one."""
    if parameter.kind == "local":
        return str(parameter.which)
    return f".{parameter.kind}{parameter.which}"


def _parameters(
    analysis: _Analysis, stack: tuple[StackSlot, ...], passed: tuple[str, ...]
) -> tuple[Parameter, ...]:
    slots = [Parameter("stack", depth) for depth, slot in enumerate(stack) if slot is VALUE]
    variables = [Parameter("local", name) for name in passed]
    first = analysis.first_argument
    if first is None:
        return (*slots, *variables)
    if first in analysis.body.cellvars:
        return (Parameter("cell", first), *slots, *variables)
    head = [variable for variable in variables if variable.which == first]
    return (*head, *slots, *(variable for variable in variables if variable.which != first))


def _entry(
    parameters: tuple[Parameter, ...],
    names: list[str],
    stack: tuple[StackSlot, ...],
    freevars: tuple[str, ...],
    target: Instruction,
) -> list[Instruction]:
    """Put the stack in place, give up the parameters' own references to it, and go to the place."""
    emitter = Emitter(target.position)
    emitter.instructions += function_prologue((), freevars, target.position)
    by_slot = {
        parameter.which: name
        for parameter, name in zip(parameters, names, strict=True)
        if parameter.kind == "stack"
    }
    for depth, slot in enumerate(stack):
        if slot is NULL:
            emitter.push_null()
            continue
        emitter.emit("LOAD_FAST", argval=by_slot[depth])
        emitter.delete_fast(by_slot[depth])
    emitter.jump(target)
    return emitter.instructions


class _Analysis:
    """What resuming needs to know about a body: depths, live locals, where instruction offsets are on the stack."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.body = decode(code)
        if self.body.is_generator:
            raise UnsupportedBytecodeError("CAP102", f"{code.co_qualname} is a generator or coroutine")
        self.depths = stack_depths(self.body)
        self._live = live_variables(self.body)
        self._assigned = assigned_variables(self.body)
        self._displaced = displaced_cells(self.body)
        self._offsets = _offset_slots(self.body)

    @property
    def first_argument(self) -> str | None:
        """The argument that ``super()`` without arguments would find, if the rest may call it."""
        if "__class__" not in self.body.freevars or not self.body.argcount:
            return None
        return self.body.varnames[0]

    def check(self, index: int, stack: Sequence[StackSlot]) -> None:
        """Refuse a place that cannot be resumed."""
        where = f"{self.body.instructions[index]!r} of {self.code.co_qualname}"
        depth = self.depths[index]
        if depth is None:
            raise UnsupportedBytecodeError("CAP103", f"control never comes to {where}")
        if self._offsets[index]:
            raise UnsupportedBytecodeError("CAP103", f"{where} is in the clean-up after an exception")
        if self._displaced[index]:
            names = ", ".join(sorted(self._displaced[index]))
            raise UnsupportedBytecodeError(
                "CAP103", f"{where} is in a comprehension that has put away the cell of {names}"
            )
        if len(stack) != depth:
            raise UnsupportedBytecodeError(
                "CAP105", f"{len(stack)} stack slots given, {depth} are before {where}"
            )

    def passed_locals(self, index: int, unbound: Collection[str], keep: Collection[str]) -> tuple[str, ...]:
        """Locals to pass, in slot order."""
        wanted = {*(self._live[index] & self._assigned[index]), *keep}
        first = self.first_argument
        if first is not None:
            wanted.add(first)
        wanted -= {*unbound, *self.body.cellvars, *self.body.freevars}
        return tuple(name for name in self.body.varnames if name in wanted)


def _offset_slots(body: CodeBody) -> list[frozenset[int]]:
    """Before each instruction: the stack slots that hold an instruction offset pushed for a handler."""
    flow = ControlFlow(body.instructions)
    depths = stack_depths(body)
    slots: list[frozenset[int]] = [frozenset()] * len(body.instructions)
    pending = [0] if body.instructions else []
    seen: set[int] = set()
    while pending:
        index = pending.pop()
        seen.add(index)
        instruction, depth = body.instructions[index], depths[index]
        if depth is None:
            continue
        reached = []
        for successor in flow.normal_successors(index):
            left = depth + min(0, stack_effect(instruction))
            reached.append((successor, frozenset(slot for slot in slots[index] if slot < left)))
        if instruction.handler is not None:
            base = instruction.handler.depth
            kept = {slot for slot in slots[index] if slot < base}
            pushed = {base} if instruction.handler.push_lasti else set()
            reached.append((flow.index[instruction.handler.target], frozenset(kept | pushed)))
        for successor, found in reached:
            if successor not in seen or not found <= slots[successor]:
                slots[successor] |= found
                pending.append(successor)
    return slots
