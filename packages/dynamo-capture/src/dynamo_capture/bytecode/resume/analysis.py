"""What resuming needs to know about a body: the places it can be entered at, and what a resume function takes there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum
from types import CodeType
from typing import Literal, NamedTuple

from dynamo_capture.bytecode.control_flow import past_loop_end
from dynamo_capture.bytecode.decoded import Decoded, decoded
from dynamo_capture.bytecode.depth import stack_effect
from dynamo_capture.bytecode.errors import PLACE_NOT_RESUMABLE, STACK_MISMATCH, UnsupportedBytecodeError
from dynamo_capture.bytecode.instruction import CodeBody
from dynamo_capture.bytecode.liveness import reads_and_writes
from dynamo_capture.bytecode.resume.entries import CALLEE_NAME


class StackSlot(Enum):
    """What a place on the value stack holds."""

    VALUE = "value"
    NULL = "null"


VALUE, NULL = StackSlot.VALUE, StackSlot.NULL


class Absence(Enum):
    """What is passed for a local that turns out to hold no value."""

    UNBOUND = "unbound"


UNBOUND = Absence.UNBOUND


class Parameter(NamedTuple):
    """One argument of a resume function: a stack slot, counted from the bottom, or a variable of the frame.

    A variable of kind "cell" is passed by its content (it is a cell in the frame, and a first argument of
    ``super()``). The "callee" is what is called first. A "place" is a local's that has no value until the rest gives it
    one: its argument is dropped.
    """

    kind: Literal["stack", "local", "cell", "callee", "place"]
    which: int | str


CALLEE = Parameter("callee", 0)


class ResumeAnalysis:
    """One body's depths and live locals, and where instruction offsets are on its stack."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        facts = decoded(code)
        self.body = facts.body
        self.depths = facts.depths
        self._flow = facts.flow
        self._live = facts.live
        self._assigned = facts.assigned
        self._displaced = facts.displaced
        self._offsets = _offset_slots(facts)
        self._mixes = not {*code.co_cellvars}.isdisjoint(code.co_freevars)

    @property
    def first_argument(self) -> str | None:
        """The argument that ``super()`` without arguments would find, if the rest may call it."""
        if "__class__" not in self.body.freevars or not self.body.argcount:
            return None
        return self.body.varnames[0]

    def check(self, index: int, stack: Sequence[object]) -> None:
        """Refuse a place that cannot be resumed."""
        where = f"{self.body.instructions[index]!r} of {self.code.co_qualname}"
        depth = self.depths[index]
        if depth is None:
            raise UnsupportedBytecodeError(PLACE_NOT_RESUMABLE, f"control never comes to {where}")
        if self._offsets[index]:
            raise UnsupportedBytecodeError(
                PLACE_NOT_RESUMABLE, f"{where} is in the clean-up after an exception"
            )
        if self._mixes:  # CPython 3.12 makes its cell in the place of the free variable of the same name
            raise UnsupportedBytecodeError(
                PLACE_NOT_RESUMABLE, f"a comprehension of {self.code.co_qualname} replaces a free variable"
            )
        if self._displaced[index]:
            names = ", ".join(sorted(self._displaced[index]))
            raise UnsupportedBytecodeError(
                PLACE_NOT_RESUMABLE, f"{where} is in a comprehension that has put away the cell of {names}"
            )
        if len(stack) != depth:
            raise UnsupportedBytecodeError(
                STACK_MISMATCH, f"{len(stack)} stack slots given, {depth} are before {where}"
            )

    def passed_locals(self, index: int, unbound: Collection[str], keep: Collection[str]) -> tuple[str, ...]:
        """Locals to pass, in slot order."""
        wanted = {*(self._live[index].union(keep) & self._assigned[index])}
        first = self.first_argument
        if first is not None:
            wanted.add(first)
        wanted -= {*unbound, *self.body.cellvars, *self.body.freevars}
        return tuple(name for name in self.body.varnames if name in wanted)

    def with_places(self, index: int, passed: Sequence[str]) -> tuple[str, ...]:
        """The passed locals, and those in front of one of them that the rest, from ``index`` on, gives a value; in slot
        order."""
        before = self.body.varnames[: self.body.varnames.index(passed[-1])] if passed else []
        absent = {*before}.difference(passed, self.body.cellvars)
        if not absent:
            return tuple(passed)
        rest = self._flow.reachable((index,))
        stored = {name for one in rest for name in reads_and_writes(self.body.instructions[one])[1]}
        return tuple(name for name in (*before, passed[-1]) if name in passed or name in absent & stored)


def _offset_slots(facts: Decoded) -> list[frozenset[int]]:
    """Before each instruction: the stack slots that hold an instruction offset pushed for a handler."""
    flow, depths, instructions = facts.flow, facts.depths, facts.body.instructions
    slots: list[frozenset[int]] = [frozenset()] * len(instructions)
    if not any(one.handler is not None and one.handler.push_lasti for one in instructions):
        return slots
    pending = [0]
    seen: set[int] = set()
    while pending:
        index = pending.pop()
        seen.add(index)
        instruction, depth = instructions[index], depths[index]
        if depth is None:
            continue
        reached = []
        for successor in flow.successors[index]:
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


def landing_of(body: CodeBody, index: int) -> int:
    """Where a frame goes on once instruction ``index`` has its answer: behind it; a branch is taken with the answer."""
    return index if body.instructions[index].opname.startswith("POP_JUMP") else index + 1


def after_loop(body: CodeBody, index: int) -> int:
    """Where a loop goes on when its FOR_ITER, instruction ``index``, finds no more items; the iterator is popped."""
    target = body.instructions[index].target
    return past_loop_end(
        body.instructions, next(i for i, one in enumerate(body.instructions) if one is target)
    )


def gives_result(body: CodeBody, depths: Sequence[int | None], index: int, below: int) -> bool:
    """Whether the answer is on the stack then, above ``below`` other values; ``depths`` are those of ``body``."""
    depth = depths[landing_of(body, index)]
    return depth is not None and depth > below


def parameter_name(parameter: Parameter) -> str:
    """The name of a resume function's argument: the variable's own where it has one."""
    if parameter.kind in ("local", "place"):
        return str(parameter.which)
    return CALLEE_NAME if parameter is CALLEE else f".{parameter.kind}{parameter.which}"


def parameters_of(
    analysis: ResumeAnalysis, index: int, stack: tuple[StackSlot, ...], passed: tuple[str, ...], callee: bool
) -> tuple[Parameter, ...]:
    """The parameters, in order, for the place ``index`` with this stack, where the locals ``passed`` hold values."""
    slots = [Parameter("stack", depth) for depth, slot in enumerate(stack) if slot is VALUE]
    if callee:
        slots.insert(0, CALLEE)
    variables = [
        Parameter("local" if name in passed else "place", name)
        for name in analysis.with_places(index, passed)
    ]
    first = analysis.first_argument
    if first in analysis.body.cellvars:
        return (Parameter("cell", str(first)), *variables, *slots)
    return (*variables, *slots)
