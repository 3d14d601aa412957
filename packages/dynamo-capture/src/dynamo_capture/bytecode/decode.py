"""Code object -> CodeBody: prefixes and caches folded away, operands resolved, jumps and handlers as references."""

from __future__ import annotations

import dis
import opcode
from collections.abc import Iterator
from types import CodeType
from typing import NamedTuple

from dynamo_capture.bytecode.instruction import CodeBody, Handler, Instruction, Position, Slot
from dynamo_capture.bytecode.tables import decode_exceptions
from dynamo_capture.bytecode.versions.running import CACHE_SIZES, CONSTANT, FREE, JUMP, LOCAL, NAME, RULES

_PLAIN = (
    frozenset(dis.opmap) - CONSTANT - NAME - LOCAL - FREE - JUMP - RULES.pairs - {"COMPARE_OP", "BINARY_OP"}
)
"""Opcodes whose argument stands for itself."""


class _Raw(NamedTuple):
    start: int
    """Byte offset of the instruction, its EXTENDED_ARG prefixes included."""
    end: int
    """Byte offset after its inline caches."""
    opname: str
    arg: int


def decode(code: CodeType) -> CodeBody:
    """Decode a code object of the running CPython version. ``assemble(decode(code))`` behaves as ``code`` does."""
    slots, freevars = _slot_names(code)
    raws = list(_raw_instructions(code.co_code))
    positions = list(code.co_positions())
    instructions = [
        Instruction(
            raw.opname,
            *_operand(code, slots, raw),
            None,
            Position._make(positions[raw.start // 2]),
            None,
            raw.start,
        )
        for raw in raws
    ]
    at = {raw.start: instruction for raw, instruction in zip(raws, instructions, strict=True)}
    for raw, instruction in zip(raws, instructions, strict=True):
        if raw.opname in JUMP:
            distance = -raw.arg if "BACKWARD" in raw.opname else raw.arg
            instruction.target = at[raw.end + 2 * distance]
    _attach_handlers(code, at, instructions)
    return CodeBody(
        instructions, code.co_name, code.co_qualname, code.co_filename, code.co_firstlineno, code.co_argcount,
        code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags, list(code.co_varnames),
        list(code.co_cellvars), freevars, code.co_consts, code.co_names,
    )  # fmt: skip


def _slot_names(code: CodeType) -> tuple[list[str], list[str]]:
    """Unique names of all frame slots in order, and of the free variables among them."""
    names = [*code.co_varnames, *(name for name in code.co_cellvars if name not in code.co_varnames)]
    freevars: list[str] = [Slot(name, "free") if name in names else name for name in code.co_freevars]
    return [*names, *freevars], freevars


def _raw_instructions(code: bytes) -> Iterator[_Raw]:
    offset = 0
    while offset < len(code):
        start, arg = offset, code[offset + 1]
        while code[offset] == dis.EXTENDED_ARG:
            offset += 2
            arg = arg << 8 | code[offset + 1]
        name = dis.opname[code[offset]]
        offset += 2 + 2 * CACHE_SIZES.get(name, 0)
        yield _Raw(start, offset, name, arg)


def _operand(code: CodeType, slots: list[str], raw: _Raw) -> tuple[int, object]:
    """(arg, argval) of the record, as the table in ``instruction`` says."""
    name, arg = raw.opname, raw.arg
    if name in _PLAIN:
        return arg, None
    if name in CONSTANT:
        return 0, code.co_consts[arg]
    if name in NAME:
        bits = RULES.name_flags.get(name, 0)
        return arg & ((1 << bits) - 1), code.co_names[arg >> bits]
    if name in LOCAL or name in FREE:
        return 0, slots[arg]
    if name in RULES.pairs:
        return 0, (slots[arg >> 4], slots[arg & 15])
    if name in JUMP:
        return 0, None
    if name == "COMPARE_OP":
        return arg, dis.cmp_op[arg >> RULES.compare_shift]
    if name == "BINARY_OP":
        return arg, opcode._nb_ops[arg][1]  # type: ignore[attr-defined]
    return arg, None


def _attach_handlers(code: CodeType, at: dict[int, Instruction], instructions: list[Instruction]) -> None:
    shared: dict[tuple[int, int, bool], Handler] = {}
    position = 0
    for entry in decode_exceptions(code.co_exceptiontable):
        key = (entry.target, entry.depth, entry.push_lasti)
        if key not in shared:
            shared[key] = Handler(at[2 * entry.target], entry.depth, entry.push_lasti)
        while position < len(instructions) and instructions[position].offset < 2 * entry.start:
            position += 1
        while position < len(instructions) and instructions[position].offset < 2 * entry.end:
            instructions[position].handler = shared[key]
            position += 1
