"""What resuming needs to know about a body: which places it can be entered at, and which locals are wanted there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import CodeType

from dynamo_capture.bytecode.control_flow import past_loop_end
from dynamo_capture.bytecode.decoded import Decoded, decoded
from dynamo_capture.bytecode.depth import stack_effect
from dynamo_capture.bytecode.errors import PLACE_NOT_RESUMABLE, STACK_MISMATCH, UnsupportedBytecodeError
from dynamo_capture.bytecode.instruction import CodeBody


class ResumeAnalysis:
    """One body's depths and live locals, and where instruction offsets are on its stack."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        facts = decoded(code)
        self.body = facts.body
        self.depths = facts.depths
        self._live = facts.live
        self._assigned = facts.assigned
        self._displaced = facts.displaced
        self._offsets = _offset_slots(facts)

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
