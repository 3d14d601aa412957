"""Where control goes: successors of an instruction, and what can be reached at all."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from dynamo_capture.bytecode.instruction import Instruction
from dynamo_capture.bytecode.version import JUMP, NO_FALLTHROUGH, RULES


class ControlFlow:
    """The control-flow graph of a list of instructions, by index. The list must not change meanwhile."""

    __slots__ = ("index", "instructions")

    def __init__(self, instructions: list[Instruction]) -> None:
        self.instructions = instructions
        self.index = {instruction: index for index, instruction in enumerate(instructions)}

    def normal_successors(self, index: int) -> tuple[int, ...]:
        """Where control may go without an exception: the next instruction first, then the jump target."""
        instruction = self.instructions[index]
        following = () if instruction.opname in NO_FALLTHROUGH else (index + 1,)
        if instruction.opname in JUMP and instruction.target is not None:
            return (*following, self.index[instruction.target])
        return following

    def handler(self, index: int) -> int | None:
        """Where an exception raised by the instruction is handled, if in this body."""
        handler = self.instructions[index].handler
        return None if handler is None else self.index[handler.target]

    def reachable(self, entries: Iterable[int] = (0,), stops: Collection[int] = ()) -> set[int]:
        """All instructions that control may reach from ``entries``, handlers included, without coming to ``stops``."""
        found: set[int] = set()
        pending = list(entries)
        while pending:
            index = pending.pop()
            if index in found or index >= len(self.instructions) or index in stops:
                continue
            found.add(index)
            pending.extend(self.normal_successors(index))
            handler = self.handler(index)
            if handler is not None:
                pending.append(handler)
        return found


def past_loop_end(instructions: list[Instruction], index: int) -> int:
    """The place after a loop, if ``index`` is where its FOR_ITER jumps to when exhausted; else ``index``.

    From 3.12 on the interpreter does not run what stands there: it goes on behind it, the iterator gone.
    """
    closing = RULES.closing_for
    return index + len(closing) if closing and instructions[index].opname == closing[0] else index


def without_unreachable(instructions: list[Instruction]) -> list[Instruction]:
    """The instructions that control may reach from the first one, in order."""
    flow = ControlFlow(instructions)
    reachable = flow.reachable()
    return [instruction for index, instruction in enumerate(instructions) if index in reachable]
