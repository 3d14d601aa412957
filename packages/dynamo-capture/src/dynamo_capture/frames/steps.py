"""Code objects made ready for the symbolic interpreter: each instruction with its handler function, once per code."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any

from dynamo_capture.bytecode.decoded import decoded
from dynamo_capture.bytecode.instruction import CodeBody
from dynamo_capture.foundation.break_kinds import UNSUPPORTED_INSTRUCTION
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.frames.opcode_table import OPCODES
from dynamo_capture.values import Const


class Step:
    """One instruction. ``run(frame, step)`` executes it; ``target`` and ``handler`` are indices of steps."""

    __slots__ = (
        "arg",
        "argval",
        "depth",
        "handler",
        "index",
        "lasti",
        "line",
        "offset",
        "opname",
        "run",
        "target",
    )

    def __init__(self, opname: str, arg: int, argval: Any, line: int | None, index: int, offset: int) -> None:
        self.opname = opname
        self.arg = arg
        self.argval = argval
        self.line = line
        self.index = index
        self.offset = offset
        self.run: Callable[..., Any] = _unknown
        self.target = -1
        self.handler = -1
        self.depth = 0
        self.lasti = False


def _unknown(frame: Any, step: Step) -> Any:
    raise GraphBreak(UNSUPPORTED_INSTRUCTION, f"the instruction {step.opname} is not supported")


class PreparedCode:
    """The steps of one code object."""

    __slots__ = ("body", "code", "steps")

    def __init__(self, code: CodeType, body: CodeBody, steps: list[Step]) -> None:
        self.code = code
        self.body = body
        self.steps = steps


_PREPARED: dict[int, tuple[weakref.ref[CodeType], CodeBody, list[Step]]] = {}
"""By the identity of a code object: what was made of it, as long as it is alive."""


def prepare(code: CodeType) -> PreparedCode:
    """The steps of ``code``; remembered as long as it is alive."""
    key = id(code)
    found = _PREPARED.get(key)
    if found is not None and found[0]() is code:
        return PreparedCode(code, found[1], found[2])
    body = decoded(code).body
    steps = _steps(body)

    def forget(dead: weakref.ref[CodeType]) -> None:
        known = _PREPARED.get(key)
        if known is not None and known[0] is dead:
            del _PREPARED[key]

    _PREPARED[key] = (weakref.ref(code, forget), body, steps)
    return PreparedCode(code, body, steps)


def _steps(body: CodeBody) -> list[Step]:
    places = {instruction: index for index, instruction in enumerate(body.instructions)}
    steps = []
    for index, instruction in enumerate(body.instructions):
        argval = instruction.argval
        if instruction.opname in ("LOAD_CONST", "RETURN_CONST"):
            argval = Const(argval)
        line, offset = instruction.position.line, instruction.offset
        step = Step(instruction.opname, instruction.arg, argval, line, index, offset)
        step.run = OPCODES.get(instruction.opname, _unknown)
        if instruction.target is not None:
            step.target = places[instruction.target]
        if instruction.handler is not None:
            step.handler = places[instruction.handler.target]
            step.depth = instruction.handler.depth
            step.lasti = instruction.handler.push_lasti
        steps.append(step)
    return steps
