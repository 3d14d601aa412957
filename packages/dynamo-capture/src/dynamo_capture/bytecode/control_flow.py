"""Where control goes: successors of an instruction, and what can be reached at all."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from dynamo_capture.bytecode.instruction import Instruction
from dynamo_capture.bytecode.versions.running import JUMP, NO_FALLTHROUGH, RULES


class ControlFlow:
    """The control-flow graph of a list of instructions, by index. The list must not change meanwhile.

    ``successors``: by instruction, where control may go without an exception: the next instruction first, then the jump
    target. ``handlers``: where an exception that it raises is handled, None if not in this body.
    """

    __slots__ = ("handlers", "index", "instructions", "successors")

    def __init__(self, instructions: list[Instruction]) -> None:
        self.instructions = instructions
        self.index = index = {instruction: place for place, instruction in enumerate(instructions)}
        successors: list[tuple[int, ...]] = []
        handlers: list[int | None] = []
        nowhere = len(instructions)
        for following, instruction in enumerate(instructions, 1):
            opname, target, handler = instruction.opname, instruction.target, instruction.handler
            if opname not in JUMP or target is None:
                successors.append(() if opname in NO_FALLTHROUGH else (following,))
            elif opname in NO_FALLTHROUGH:
                successors.append((index.get(target, nowhere),))
            else:
                successors.append((following, index.get(target, nowhere)))
            handlers.append(None if handler is None else index.get(handler.target, nowhere))
        self.successors = successors
        self.handlers = handlers

    def reachable(self, entries: Iterable[int] = (0,), stops: Collection[int] = ()) -> set[int]:
        """All instructions that control may reach from ``entries``, handlers included, without coming to ``stops``."""
        found: set[int] = set()
        successors, handlers, count = self.successors, self.handlers, len(self.instructions)
        pending = list(entries)
        while pending:
            index = pending.pop()
            if index in found or index >= count or index in stops:
                continue
            found.add(index)
            pending += successors[index]
            handler = handlers[index]
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
