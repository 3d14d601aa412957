"""How deep the value stack is before each instruction."""

from __future__ import annotations

import dis
import functools

from dynamo_capture.bytecode.control_flow import ControlFlow
from dynamo_capture.bytecode.errors import UnsupportedBytecodeError
from dynamo_capture.bytecode.instruction import CodeBody, Instruction
from dynamo_capture.bytecode.version import HAS_ARGUMENT, JUMP, RULES


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
        raise UnsupportedBytecodeError("CAP104", f"no opcode {name} in this CPython")
    if name == "PRECALL":  # leaves the arguments where they are; dis counts them as popped here, not by CALL
        return 0
    effect = dis.stack_effect(number, arg if real in HAS_ARGUMENT else None, jump=jump)
    if name == "CALL" and RULES.has_precall:
        effect -= arg
    return effect


def stack_depths(body: CodeBody) -> list[int | None]:
    """The depth before each instruction of ``body``; None where control never comes.

    Raises UnsupportedBytecodeError (CAP104) if two ways to one instruction disagree or the stack runs empty.
    """
    flow = ControlFlow(body.instructions)
    depths: list[int | None] = [None] * len(body.instructions)
    pending = [(0, RULES.generator_entry_depth if body.is_generator else 0)] if body.instructions else []
    while pending:
        index, depth = pending.pop()
        if index >= len(depths):
            raise UnsupportedBytecodeError("CAP104", f"control runs off the end of {body.qualname}")
        known = depths[index]
        if known is not None:
            if known != depth:
                where = f"{body.instructions[index]!r} of {body.qualname}"
                raise UnsupportedBytecodeError("CAP104", f"stack depth {known} or {depth} before {where}")
            continue
        depths[index] = depth
        pending.extend(_next_depths(flow, index, depth))
    return depths


def _next_depths(flow: ControlFlow, index: int, depth: int) -> list[tuple[int, int]]:
    instruction = flow.instructions[index]
    found = []
    for successor in flow.normal_successors(index):
        jump = instruction.opname in JUMP and successor != index + 1
        after = depth + stack_effect(instruction, jump=jump)
        if after < 0:
            raise UnsupportedBytecodeError("CAP104", f"the stack runs empty at {instruction!r}")
        found.append((successor, after))
    handler = instruction.handler
    if handler is not None:
        found.append((flow.index[handler.target], handler.depth + handler.push_lasti + 1))
    return found


def largest_depth(body: CodeBody) -> int:
    """The stack size that running ``body`` needs."""
    most = 1
    for instruction, depth in zip(body.instructions, stack_depths(body), strict=True):
        if depth is not None:
            name, arg = instruction.opname, instruction.arg
            most = max(
                most, depth, depth + _stack_effect(name, arg, False), depth + _stack_effect(name, arg, True)
            )
    return most
