"""The computed stack depth is the compiler's."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json.decoder
import types
from typing import Any

import pytest

from dynamo_capture.bytecode.decode import decode
from dynamo_capture.bytecode.depth import largest_depth, stack_depths, stack_effect
from dynamo_capture.bytecode.errors import UnsupportedBytecodeError
from dynamo_capture.bytecode.instruction import CodeBody, Instruction


def _codes(module: types.ModuleType) -> list[types.CodeType]:
    pending = [compile(inspect.getsource(module), "<module>", "exec")]
    found = []
    while pending:
        found.append(pending.pop())
        pending += [constant for constant in found[-1].co_consts if isinstance(constant, types.CodeType)]
    return found


@pytest.mark.parametrize("module", [asyncio.base_events, contextlib, inspect, json.decoder])
def test_no_smaller_than_needed_and_hardly_larger(module: Any) -> None:
    for code in _codes(module):
        body = decode(code)
        needed = largest_depth(body)
        assert needed <= max(1, code.co_stacksize), (
            "the compiler counts unreachable code and handlers generously"
        )
        assert needed >= code.co_stacksize - 3


def test_unreachable_has_no_depth() -> None:
    body = decode((lambda: 1).__code__)
    body.instructions.append(Instruction("NOP"))
    assert stack_depths(body)[-1] is None
    assert stack_depths(body)[0] == 0


def test_ways_that_disagree_are_refused() -> None:
    end = Instruction("LABEL")
    instructions = [
        Instruction("LOAD_CONST"),
        Instruction("POP_JUMP_IF_NONE", target=end),
        Instruction("LOAD_CONST"),
        end,
        Instruction("LOAD_CONST"),
        Instruction("RETURN_VALUE"),
    ]
    with pytest.raises(UnsupportedBytecodeError, match=r"stack depth (1 or 0|0 or 1)"):
        stack_depths(CodeBody(instructions, "f", "f", "<test>", 1))


def test_effects() -> None:
    assert stack_effect(Instruction("LABEL")) == 0
    assert stack_effect(Instruction("BUILD_TUPLE", 3)) == -2
    assert stack_effect(Instruction("LOAD_GLOBAL", 1, "f")) == 2
    with pytest.raises(UnsupportedBytecodeError):
        stack_effect(Instruction("NO_SUCH_OPCODE"))
