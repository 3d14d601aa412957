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
anyway), ``maybe`` those of which only the running frame knows (they are passed as UNBOUND then, and the resume
function unbinds them), ``keep`` those to pass although the rest does not read them. A frame clears its variables in
the order of their slots, so that a resume function has its locals in the original's order: one that holds no value yet
and stands in front of one that is passed has an argument of kind "place", whatever is passed for it. The place after a
``for`` loop may be given by the FOR_ITER's target. Exception handlers of the rest protect the resume function as they
did the original, at the same depths.

    plan = resumes.make(code, index, below, callee=True)       # instruction ``index`` is a call that has not returned

is for a frame in the middle of a call, or of another instruction that a call answers (an operator, an attribute, a
branch), ``below`` being the stack under the result. The resume function takes
something to call as its parameter "callee", calls it where the call stood, under the handlers that it had, and goes on
behind it with the result.

    plan = resumes.make_generator(code, index, stack)          # ``code`` is a generator's

is for a generator that is suspended before instruction ``index``, behind a ``yield`` or at its start; ``stack`` is what
lies below the value that it will be sent. Calling the function gives a generator; one that was behind a ``yield`` gets
there again, and yields None on the way: its first item is to be thrown away.

A place in a resume function is traced back to the original's: resuming the same place again (a break in a loop)
gives the same code object. Refused with UnsupportedBytecodeError: a generator given to ``make`` (CAP102), places that
are unreachable or where the stack holds an instruction offset, which means nothing in other code (CAP103: clean-up
after an exception in ``with`` or a handler), or a comprehension has put away a cell of the function (CAP103), a
``stack`` of the wrong length (CAP105).

``super()`` without arguments reads the frame's first slot: where the rest may do that, the original's first argument
is the resume function's first parameter. Locals come first otherwise, so that a call of ``super`` by another name
finds a value there, as it did, and refuses for the reason that it had.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import NamedTuple

from dynamo_capture.bytecode.assemble import assemble, assemble_with_offsets
from dynamo_capture.bytecode.control_flow import past_loop_end, without_unreachable
from dynamo_capture.bytecode.decoded import decoded
from dynamo_capture.bytecode.emit import STARTS, STARTS_UNINTERRUPTED, Emitter, function_prologue
from dynamo_capture.bytecode.errors import PLACE_NOT_RESUMABLE, RESUMED_GENERATOR, UnsupportedBytecodeError
from dynamo_capture.bytecode.instruction import (
    CO_NESTED,
    CO_NEWLOCALS,
    CO_OPTIMIZED,
    GENERATOR_FLAGS,
    CodeBody,
    Instruction,
)
from dynamo_capture.bytecode.liveness import reads_and_writes
from dynamo_capture.bytecode.resume.analysis import (
    CALLEE,
    NULL,
    UNBOUND,
    VALUE,
    Parameter,
    ResumeAnalysis,
    StackSlot,
    after_loop,
    gives_result,
    landing_of,
    parameter_name,
    parameters_of,
)
from dynamo_capture.bytecode.resume.entries import (
    RAISED_NAME,
    call_first,
    raise_first,
    raise_in_callee,
    unless_ended,
)
from dynamo_capture.bytecode.resume.unbound_cells import raise_as_own


@dataclass(frozen=True, slots=True, eq=False)
class ResumePlan:
    """A resume function's code and what to call it with."""

    code: CodeType
    parameters: tuple[Parameter, ...]
    freevars: tuple[str, ...]
    stack: tuple[StackSlot, ...]
    maybe: frozenset[str] = frozenset()

    @property
    def calls(self) -> bool:
        """Whether it begins by calling its parameter "callee"."""
        return CALLEE in self.parameters


class _Place(NamedTuple):
    """An instruction of an original body, which resume functions of it lead back to. ``calls``: it stands for that
    call, but takes what it calls from elsewhere."""

    code: CodeType
    position: int
    calls: bool = False


class _Recipe(NamedTuple):
    """What a resume function is made from; see ``ResumeCodes.make``."""

    analysis: ResumeAnalysis
    place: int
    stack: tuple[StackSlot, ...]
    passed: tuple[str, ...]
    maybe: frozenset[str]
    callee: bool

    @property
    def in_block(self) -> bool:
        """Whether something may handle what is raised where the rest begins, or its callee goes on."""
        return self.callee or self.analysis.body.instructions[self.place].handler is not None


class ResumeCodes:
    """Makes resume functions and remembers them, one for each place, stack and choice of locals."""

    def __init__(self) -> None:
        self._plans: dict[object, ResumePlan] = {}
        self._origins: dict[int, tuple[CodeType, dict[int, _Place]]] = {}
        """id of a resume function's code -> the code (kept alive) and, by byte offset, the place it came from."""
        self._analyses: dict[int, ResumeAnalysis] = {}
        self._recipes: dict[int, _Recipe] = {}
        """What a resume function was made from, by the id of its code."""

    def make(
        self,
        code: CodeType,
        index: int,
        stack: Sequence[StackSlot] = (),
        *,
        unbound: Collection[str] = (),
        maybe: Collection[str] = (),
        keep: Collection[str] = (),
        callee: bool = False,
    ) -> ResumePlan:
        """The resume function for instruction ``index`` of ``decode(code)``; see the module's text."""
        place = self._place(code, index)
        if place.calls and not callee:
            raise UnsupportedBytecodeError(
                PLACE_NOT_RESUMABLE, f"a resume function of {code.co_qualname} calls its callee"
            )
        analysis = self._analysis(place.code)
        if analysis.body.is_generator:
            raise UnsupportedBytecodeError(
                RESUMED_GENERATOR, f"{code.co_qualname} is a generator or coroutine"
            )
        index = past_loop_end(analysis.body.instructions, place.position)
        if callee:
            result = (VALUE,) if gives_result(analysis.body, analysis.depths, index, len(stack)) else ()
            analysis.check(landing_of(analysis.body, index), (*stack, *result))
        else:
            analysis.check(index, stack)
        passed = analysis.passed_locals(index, unbound, keep)
        perhaps = frozenset(maybe) & frozenset(passed)
        key = (id(place.code), index, tuple(stack), passed, perhaps, callee)
        if key not in self._plans:
            recipe = _Recipe(analysis, index, tuple(stack), passed, perhaps, callee)
            self._plans[key] = plan = self._build(recipe)
            self._recipes[id(plan.code)] = recipe
        return self._plans[key]

    def raising(self, code: CodeType, take: Callable[[], BaseException] | None = None) -> CodeType | None:
        """A resume function as another one that raises its last argument, which it has besides, or what ``take`` gives,
        at its first instruction; within the callee, where it begins with one. None where nothing would handle that, or
        for code of another kind."""
        recipe = self._recipes.get(id(code))
        if recipe is None or not recipe.in_block:
            return None
        if take is not None:
            return self._build(recipe, raises=True, take=take).code
        key = (id(code), "raises")
        if key not in self._plans:
            self._plans[key] = self._build(recipe, raises=True)
        return self._plans[key].code

    def make_generator(
        self, code: CodeType, index: int, stack: Sequence[StackSlot] = (), *, unbound: Collection[str] = ()
    ) -> ResumePlan:
        """The generator function for a generator suspended before ``index``; see the module's text."""
        analysis = self._analysis(code)
        analysis.check(index, (*stack, VALUE))
        passed = analysis.passed_locals(index, unbound, ())
        key = (id(code), index, tuple(stack), passed)
        if key not in self._plans:
            self._plans[key] = self._build_generator(analysis, index, tuple(stack), passed)
        return self._plans[key]

    def _build_generator(
        self, analysis: ResumeAnalysis, index: int, stack: tuple[StackSlot, ...], passed: tuple[str, ...]
    ) -> ResumePlan:
        body, twins = analysis.body.clone_with_map()
        body.instructions += raise_as_own(decoded(analysis.code), twins)
        originals = analysis.body.instructions
        freevars = (*body.cellvars, *body.freevars)
        parameters = parameters_of(analysis, index, stack, passed, False)
        names = [parameter_name(parameter) for parameter in parameters]
        emitter = Emitter(originals[index].position)
        if freevars:
            emitter.emit("COPY_FREE_VARS", len(freevars))
        emitter.emit("RETURN_GENERATOR")
        if originals[index - 1].opname == "YIELD_VALUE":
            emitter.pop_top()
            emitter.emit("RESUME", 0)
            _push_stack(emitter, parameters, names, stack)
            emitter.load_const(None)
            index -= (
                1  # to the place itself: before it stands the SEND to which ``generator.throw`` goes back
            )
        emitter.jump(twins[originals[index]])
        body.instructions = without_unreachable([*emitter.instructions, *body.instructions])
        _become_function(body, names, freevars)
        return ResumePlan(assemble(body), parameters, freevars, stack)

    def origin(self, code: CodeType, index: int) -> tuple[CodeType, int]:
        """The original code and instruction that a place stands for; itself if ``code`` is no resume function."""
        place = self._place(code, index)
        return place.code, place.position

    def original(self, code: CodeType) -> CodeType:
        """The code of which a resume function is a rest; itself if it is none."""
        known = self._origins.get(id(code))
        return next(iter(known[1].values())).code if known is not None and known[1] else code

    def index_of(self, plan: ResumePlan, code: CodeType, index: int) -> int:
        """Where instruction ``index`` of ``code`` is in ``decode(plan.code)``; of a plan that calls, the call."""
        wanted = _Place(*self.origin(code, index), plan.calls)
        places = self._origins[id(plan.code)][1]
        for found, instruction in enumerate(decoded(plan.code).body.instructions):
            if places.get(instruction.offset) == wanted:
                return found
        raise UnsupportedBytecodeError(
            PLACE_NOT_RESUMABLE, f"instruction {index} is not in the rest of {code.co_qualname}"
        )

    def _place(self, code: CodeType, index: int) -> _Place:
        if id(code) not in self._origins:
            return _Place(code, index)
        instructions = decoded(code).body.instructions
        place = self._origins[id(code)][1].get(instructions[index].offset)
        return _Place(code, index) if place is None else place

    def is_resume_function(self, code: CodeType) -> bool:
        """Whether this object made ``code``."""
        return id(code) in self._origins

    def clear(self) -> None:
        """Forget everything."""
        self._plans.clear()
        self._origins.clear()
        self._analyses.clear()
        self._recipes.clear()

    def _analysis(self, code: CodeType) -> ResumeAnalysis:
        if id(code) not in self._analyses:
            self._analyses[id(code)] = ResumeAnalysis(code)
        return self._analyses[id(code)]

    def _build(
        self, recipe: _Recipe, *, raises: bool = False, take: Callable[[], BaseException] | None = None
    ) -> ResumePlan:
        analysis, index, stack, passed, maybe, callee = recipe
        body, twins = analysis.body.clone_with_map()
        body.instructions += raise_as_own(decoded(analysis.code), twins)
        freevars = (*body.cellvars, *body.freevars)
        parameters = parameters_of(analysis, index, stack, passed, callee)
        names = [parameter_name(parameter) for parameter in parameters]
        place = twins[analysis.body.instructions[index]]
        begins = STARTS_UNINTERRUPTED if recipe.in_block else STARTS
        start = _entry(
            parameters, names, stack, function_prologue((), freevars, place.position, begins), place, maybe
        )
        landing = landing_of(analysis.body, index)
        call = []
        if raises and take is None:
            names.append(RAISED_NAME)
        if raises:
            start += raise_in_callee(place, self.raising, take) if callee else raise_first(place, take)
        if callee:
            kept = gives_result(analysis.body, analysis.depths, index, len(stack))
            call = call_first(place, twins[analysis.body.instructions[landing]], kept)
            if place.opname == "FOR_ITER":
                end = analysis.body.instructions[after_loop(analysis.body, index)]
                call = unless_ended(call, twins[end])
        if callee or not raises:
            start += call or [Instruction("JUMP", target=place, position=place.position)]
        body.instructions = without_unreachable([*start, *body.instructions])
        _become_function(body, names, freevars)
        code, offsets = assemble_with_offsets(body)
        places = {
            offsets[twins[old]]: _Place(analysis.code, position)
            for position, old in enumerate(analysis.body.instructions)
            if twins[old] in offsets
        }
        for instruction in call:
            if instruction.opname == "CALL":
                places[offsets[instruction]] = _Place(analysis.code, index, True)
            elif instruction is call[-1] and instruction in offsets:
                places.setdefault(offsets[instruction], _Place(analysis.code, landing))
        self._origins[id(code)] = (code, places)
        return ResumePlan(code, parameters, freevars, stack, maybe)


_KEPT_FLAGS = 0x01FF0000 | GENERATOR_FLAGS
"""``from __future__`` flags, and what makes a generator."""


def _become_function(body: CodeBody, names: list[str], freevars: tuple[str, ...]) -> None:
    """Give a body these arguments and free variables, and no cells of its own."""
    used = {name for one in body.instructions for touched in reads_and_writes(one) for name in touched}
    later = [name for name in body.varnames if name in used.difference(names, freevars)]
    body.varnames, body.cellvars, body.freevars = [*names, *later], [], list(freevars)
    body.argcount, body.posonlyargcount, body.kwonlyargcount = len(names), 0, 0
    body.flags = CO_OPTIMIZED | CO_NEWLOCALS | (CO_NESTED if freevars else 0) | body.flags & _KEPT_FLAGS
    body.consts = (None,)


def _entry(
    parameters: tuple[Parameter, ...],
    names: list[str],
    stack: tuple[StackSlot, ...],
    prologue: list[Instruction],
    target: Instruction,
    maybe: frozenset[str],
) -> list[Instruction]:
    """Unbind what is, put the stack in place, and give up the parameters' own references to it."""
    emitter = Emitter(target.position)
    emitter.instructions += prologue
    for name in sorted(maybe):
        bound = emitter.label()
        emitter.load_fast(name)
        emitter.load_const(UNBOUND)
        emitter.is_op()
        emitter.pop_jump_if_false(bound)
        emitter.delete_fast(name)
        emitter.place(bound)
    _push_stack(emitter, parameters, names, stack)
    return emitter.instructions


def _push_stack(
    emitter: Emitter, parameters: tuple[Parameter, ...], names: list[str], stack: tuple[StackSlot, ...]
) -> None:
    for parameter in parameters:
        if parameter.kind == "place":
            emitter.delete_fast(str(parameter.which))
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
