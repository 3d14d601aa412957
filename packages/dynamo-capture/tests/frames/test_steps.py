"""Steps are what the decoder says of the same code: opcodes, operands, lines, jumps and handlers."""

from __future__ import annotations

import argparse
import asyncio.base_events
import types
from collections.abc import Iterator

from dynamo_capture.bytecode.decode import decode
from dynamo_capture.frames.steps import prepare
from dynamo_capture.values import Const


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def test_steps_are_decoded_instructions() -> None:
    seen = set()
    for module in (argparse, asyncio.base_events):
        with open(str(module.__file__)) as file:
            source = file.read()
        for code in _codes(compile(source, "<module>", "exec")):
            prepared, body = prepare(code), decode(code)
            places = {instruction: index for index, instruction in enumerate(body.instructions)}
            assert prepared.is_generator == body.is_generator
            assert len(prepared.steps) == len(body.instructions)
            for index, (step, instruction) in enumerate(zip(prepared.steps, body.instructions, strict=True)):
                value = step.argval.value if isinstance(step.argval, Const) else step.argval
                assert (step.opname, step.arg) == (instruction.opname, instruction.arg)
                assert value is instruction.argval or value == instruction.argval
                assert (step.index, step.offset) == (index, instruction.offset)
                assert step.line == instruction.position.line
                target, handler = instruction.target, instruction.handler
                assert step.target == (-1 if target is None else places[target])
                if handler is None:
                    assert step.handler == -1
                else:
                    assert step.handler == places[handler.target]
                    assert (step.depth, step.lasti) == (handler.depth, handler.push_lasti)
                seen |= {"jump"} if target is not None else set()
                seen |= {"handler"} if handler is not None else set()
    assert seen == {"jump", "handler"}


def test_steps_are_kept_as_long_as_their_code() -> None:
    code = compile("x = 1", "<text>", "exec")
    assert prepare(code).steps is prepare(code).steps
