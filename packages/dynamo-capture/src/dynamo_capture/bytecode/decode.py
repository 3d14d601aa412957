"""Code object -> CodeBody: prefixes and caches folded away, operands resolved, jumps and handlers as references."""

from __future__ import annotations

import dis
import opcode
from collections.abc import Sequence
from types import CodeType
from typing import Any, NamedTuple

from dynamo_capture.bytecode.instruction import CodeBody, Handler, Instruction, Position, Slot
from dynamo_capture.bytecode.tables import decode_exceptions
from dynamo_capture.bytecode.versions.running import CACHE_SIZES, CONSTANT, FREE, JUMP, LOCAL, NAME, RULES

_CONSTS, _NAMES, _SLOTS, _COMPARISONS, _BINARY, _PAIRS, _NOTHING = range(7)
"""Where ``argval`` comes from: a table of the code or of the interpreter, two slots, or nowhere."""
_ALL = -1
"""Bits of the raw argument that stay in ``arg``: all of them."""


class _Form(NamedTuple):
    """How the instructions of one opcode are written."""

    opname: str
    length: int
    """In bytes, with its inline caches."""
    table: int
    shift: int = 0
    """The bits below the index into the table."""
    kept: int = 0
    """Which bits of the raw argument are ``arg``."""
    jump: int = 0
    """Its direction: 1 or -1; 0: none."""


def _form(opname: str) -> _Form:
    length = 2 + 2 * CACHE_SIZES.get(opname, 0)
    if opname in CONSTANT:
        return _Form(opname, length, _CONSTS)
    if opname in NAME:
        bits = RULES.name_flags.get(opname, 0)
        return _Form(opname, length, _NAMES, bits, (1 << bits) - 1)
    if opname in LOCAL or opname in FREE:
        return _Form(opname, length, _SLOTS)
    if opname in RULES.pairs:
        return _Form(opname, length, _PAIRS)
    if opname in JUMP:
        return _Form(opname, length, _NOTHING, jump=-1 if "BACKWARD" in opname else 1)
    if opname == "COMPARE_OP":
        return _Form(opname, length, _COMPARISONS, RULES.compare_shift, _ALL)
    if opname == "BINARY_OP":
        return _Form(opname, length, _BINARY, 0, _ALL)
    return _Form(opname, length, _NOTHING, 0, _ALL)


_FORMS = tuple(map(_form, dis.opname[:256]))
_OPERATORS = tuple(entry[1] for entry in opcode._nb_ops)  # type: ignore[attr-defined]


class Scanned(NamedTuple):
    """One instruction without its surroundings; ``arg`` and ``argval`` as the table in ``instruction`` says."""

    start: int
    """Its byte offset, with the EXTENDED_ARG prefixes."""
    opname: str
    arg: int
    argval: object
    target: int
    """The byte offset that it may jump to; -1: it does not jump."""


def decode(code: CodeType) -> CodeBody:
    """Decode a code object of the running CPython version. ``assemble(decode(code))`` behaves as ``code`` does."""
    slots, freevars = _slot_names(code)
    positions = list(code.co_positions())
    at: dict[int, Instruction] = {}
    jumps: list[tuple[Instruction, int]] = []
    for start, opname, arg, argval, target in _scan(code, slots):
        position = Position._make(positions[start // 2])
        made = at[start] = Instruction(opname, arg, argval, None, position, None, start)
        if target >= 0:
            jumps.append((made, target))
    for instruction, target in jumps:
        instruction.target = at[target]
    instructions = list(at.values())
    _attach_handlers(code, at, instructions)
    return CodeBody(
        instructions, code.co_name, code.co_qualname, code.co_filename, code.co_firstlineno, code.co_argcount,
        code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags, list(code.co_varnames),
        list(code.co_cellvars), freevars, code.co_consts, code.co_names,
    )  # fmt: skip


def scan(code: CodeType) -> list[Scanned]:
    """The instructions of a code object in order: what ``decode`` gives, for those who only run them."""
    return _scan(code, _slot_names(code)[0])


def _scan(code: CodeType, slots: list[str]) -> list[Scanned]:
    tables: tuple[Sequence[Any], ...] = (code.co_consts, code.co_names, slots, dis.cmp_op, _OPERATORS)
    text, extended = code.co_code, dis.EXTENDED_ARG
    found: list[Any] = []
    offset = 0
    while offset < len(text):
        start, number, raw = offset, text[offset], text[offset + 1]
        while number == extended:
            offset += 2
            number, raw = text[offset], raw << 8 | text[offset + 1]
        opname, length, table, shift, kept, jump = _FORMS[number]
        offset += length
        argval: object = None
        if table < _PAIRS:
            argval = tables[table][raw >> shift]
        elif table == _PAIRS:
            argval = slots[raw >> 4], slots[raw & 15]
        target = offset + 2 * jump * raw if jump else -1
        found.append((start, opname, raw & kept, argval, target))  # a plain tuple takes half of the time
    return found


def _slot_names(code: CodeType) -> tuple[list[str], list[str]]:
    """Unique names of all frame slots in order, and of the free variables among them."""
    names = [*code.co_varnames, *(name for name in code.co_cellvars if name not in code.co_varnames)]
    freevars = [*free_variables(code)]
    return [*names, *freevars], freevars


def free_variables(code: CodeType) -> tuple[str, ...]:
    """The names that a code object's free variables have in its frames, in order: unique ones. A comprehension in it
    may have a variable of the same name."""
    taken = {*code.co_varnames, *code.co_cellvars} if code.co_freevars else ()
    if not taken or taken.isdisjoint(code.co_freevars):
        return code.co_freevars
    return tuple(Slot(name, "free") if name in taken else name for name in code.co_freevars)


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
