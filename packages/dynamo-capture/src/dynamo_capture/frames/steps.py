"""Code objects made ready for the symbolic interpreter: each instruction with its handler function, once per code."""

from __future__ import annotations

import weakref
from bisect import bisect_left
from collections.abc import Callable
from types import CodeType
from typing import Any

from dynamo_capture.bytecode.decode import scan
from dynamo_capture.bytecode.decoded import decoded
from dynamo_capture.bytecode.instruction import GENERATOR_FLAGS, CodeBody
from dynamo_capture.bytecode.tables import decode_exceptions
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

    __slots__ = ("code", "steps")

    def __init__(self, code: CodeType, steps: list[Step]) -> None:
        self.code = code
        self.steps = steps

    @property
    def body(self) -> CodeBody:
        """Its instructions, for those who write code: of most functions only the steps are needed."""
        return decoded(self.code).body

    @property
    def is_generator(self) -> bool:
        """Whether calling it gives a generator, a coroutine or an asynchronous generator."""
        return bool(self.code.co_flags & GENERATOR_FLAGS)


_PREPARED: dict[int, tuple[weakref.ref[CodeType], list[Step]]] = {}
"""By the identity of a code object: what was made of it, as long as it is alive."""


def prepare(code: CodeType) -> PreparedCode:
    """The steps of ``code``; remembered as long as it is alive."""
    key = id(code)
    found = _PREPARED.get(key)
    if found is not None and found[0]() is code:
        return PreparedCode(code, found[1])
    steps = _steps(code)

    def forget(dead: weakref.ref[CodeType]) -> None:
        known = _PREPARED.get(key)
        if known is not None and known[0] is dead:
            del _PREPARED[key]

    _PREPARED[key] = (weakref.ref(code, forget), steps)
    return PreparedCode(code, steps)


def _steps(code: CodeType) -> list[Step]:
    lines: list[int | None] = []
    for start, end, line in code.co_lines():
        lines += [line] * ((end - start) // 2)
    at: dict[int, Step] = {}
    jumps = []
    for index, (start, opname, arg, argval, target) in enumerate(scan(code)):
        value = Const(argval) if opname in _CONSTANTS else argval
        step = at[start] = Step(opname, arg, value, lines[start // 2], index, start)
        step.run = OPCODES.get(opname, _unknown)
        if target >= 0:
            jumps.append((step, target))
    for step, target in jumps:
        step.target = at[target].index
    steps, starts = list(at.values()), list(at)
    for entry in decode_exceptions(code.co_exceptiontable):
        handler = at[2 * entry.target].index
        first, end = bisect_left(starts, 2 * entry.start), bisect_left(starts, 2 * entry.end)
        for step in steps[first:end]:
            step.handler, step.depth, step.lasti = handler, entry.depth, entry.push_lasti
    return steps


_CONSTANTS = frozenset({"LOAD_CONST", "RETURN_CONST"})
