"""Code objects made ready for the symbolic interpreter: each instruction with its handler function, once per code."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any

from dynamo_capture.bytecode.decode import decode
from dynamo_capture.bytecode.instruction import CodeBody
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
    from dynamo_capture.errors import GraphBreak

    raise GraphBreak("CAP220", f"the instruction {step.opname} is not supported")


class PreparedCode:
    """The steps of one code object."""

    __slots__ = ("body", "code", "steps")

    def __init__(self, code: CodeType, body: CodeBody, steps: list[Step]) -> None:
        self.code = code
        self.body = body
        self.steps = steps


_PREPARED: dict[int, PreparedCode] = {}


def prepare(code: CodeType) -> PreparedCode:
    """The steps of ``code``; remembered."""
    found = _PREPARED.get(id(code))
    if found is not None and found.code is code:
        return found
    from dynamo_capture.opcodes.families import OPCODES

    body = decode(code)
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
    made = PreparedCode(code, body, steps)
    if len(_PREPARED) > 5000:
        _PREPARED.clear()
    _PREPARED[id(code)] = made
    return made
