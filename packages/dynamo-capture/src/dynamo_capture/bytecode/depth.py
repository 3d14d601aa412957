"""How deep the value stack is before each instruction."""

from __future__ import annotations

import dis
import functools

from dynamo_capture.bytecode.control_flow import ControlFlow
from dynamo_capture.bytecode.errors import NOT_ASSEMBLABLE, UnsupportedBytecodeError
from dynamo_capture.bytecode.instruction import CodeBody, Instruction
from dynamo_capture.bytecode.versions.running import HAS_ARGUMENT, RULES


def stack_effect(instruction: Instruction, *, jump: bool = False) -> int:
    """By how much the stack grows; ``jump`` asks about the jump's being taken."""
    return _stack_effect(instruction.opname, instruction.arg, jump)


@functools.cache
def _stack_effect(name: str, arg: int, jump: bool) -> int:
    if name in ("LABEL", "JUMP"):
        return 0
    real = RULES.forward.get(name, name)
    number = dis.opmap.get(real)
    if number is None:
        raise UnsupportedBytecodeError(NOT_ASSEMBLABLE, f"no opcode {name} in this CPython")
    if name == "PRECALL":  # leaves the arguments where they are; dis counts them as popped here, not by CALL
        return 0
    effect = dis.stack_effect(number, arg if real in HAS_ARGUMENT else None, jump=jump)
    if name == "CALL" and RULES.has_precall:
        effect -= arg
    return effect


@functools.cache
def _effects(name: str, arg: int) -> tuple[int, int]:
    """The effect where control goes on, and where a jump is taken."""
    return _stack_effect(name, arg, False), _stack_effect(name, arg, True)


def stack_depths(body: CodeBody, flow: ControlFlow | None = None) -> list[int | None]:
    """The depth before each instruction of ``body``; None where control never comes. ``flow`` is the body's, if known.

    Raises UnsupportedBytecodeError (CAP104) if two ways to one instruction disagree or the stack runs empty.
    """
    return _measured(body, flow or ControlFlow(body.instructions))[0]


def largest_depth(body: CodeBody) -> int:
    """The stack size that running ``body`` needs."""
    return _measured(body, ControlFlow(body.instructions))[1]


def _measured(body: CodeBody, flow: ControlFlow) -> tuple[list[int | None], int]:
    """The depth before each instruction, and the largest one in and between them."""
    instructions, successors, handlers = flow.instructions, flow.successors, flow.handlers
    count, most = len(instructions), 1
    depths: list[int | None] = [None] * count
    pending = [(0, RULES.generator_entry_depth if body.is_generator else 0)] if instructions else []
    while pending:
        index, depth = pending.pop()
        if index >= count:
            raise UnsupportedBytecodeError(NOT_ASSEMBLABLE, f"control runs off the end of {body.qualname}")
        instruction = instructions[index]
        known = depths[index]
        if known is not None:
            if known != depth:
                where = f"{instruction!r} of {body.qualname}"
                raise UnsupportedBytecodeError(
                    NOT_ASSEMBLABLE, f"stack depth {known} or {depth} before {where}"
                )
            continue
        depths[index] = depth
        onwards, jumping = _effects(instruction.opname, instruction.arg)
        most = max(most, depth, depth + onwards, depth + jumping)
        for successor in successors[index]:
            after = depth + (onwards if successor == index + 1 else jumping)
            if after < 0:
                raise UnsupportedBytecodeError(NOT_ASSEMBLABLE, f"the stack runs empty at {instruction!r}")
            pending.append((successor, after))
        handler = instruction.handler
        if handler is not None:
            reached = handlers[index]
            assert reached is not None
            pending.append((reached, handler.depth + handler.push_lasti + 1))
    return depths, most
