"""Successors, handlers and reachability."""

from __future__ import annotations

from typing import Any

from dynamo_capture.bytecode.control_flow import ControlFlow, without_unreachable
from dynamo_capture.bytecode.decode import decode
from dynamo_capture.bytecode.instruction import Instruction


def branching(flag: bool) -> Any:
    try:
        if flag:
            return 1
        return len("ab")
    except ValueError:
        return None


def test_successors() -> None:
    body = decode(branching.__code__)
    flow = ControlFlow(body.instructions)
    for index, instruction in enumerate(body.instructions):
        successors = flow.successors[index]
        if instruction.opname in ("RETURN_VALUE", "RETURN_CONST", "RERAISE"):
            assert successors == ()
        elif instruction.target is None:
            assert successors == (index + 1,)
        else:
            assert flow.index[instruction.target] in successors


def test_handlers_are_reached_only_through_what_they_protect() -> None:
    body = decode(branching.__code__)
    flow = ControlFlow(body.instructions)
    protected = next(i for i, x in enumerate(body.instructions) if x.handler is not None)
    handler = flow.handlers[protected]
    assert handler is not None
    assert handler in flow.reachable()
    for instruction in body.instructions:
        instruction.handler = None
    assert handler not in ControlFlow(body.instructions).reachable()


def test_unreachable_instructions_go() -> None:
    end = Instruction("RETURN_VALUE")
    dead = Instruction("NOP")
    instructions = [Instruction("LOAD_CONST"), Instruction("JUMP", target=end), dead, end]
    assert without_unreachable(instructions) == [instructions[0], instructions[1], end]
