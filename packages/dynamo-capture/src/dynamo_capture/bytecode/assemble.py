"""CodeBody -> code object for the running CPython version."""

from __future__ import annotations

import dis
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import CodeType

from dynamo_capture.bytecode.depth import largest_depth
from dynamo_capture.bytecode.errors import NOT_ASSEMBLABLE, UnsupportedBytecodeError
from dynamo_capture.bytecode.instruction import CodeBody, Handler, Instruction, Position, Slot
from dynamo_capture.bytecode.tables import ExceptionRange, encode_exceptions, encode_locations
from dynamo_capture.bytecode.versions.running import CACHE_SIZES, CONSTANT, FREE, JUMP, LOCAL, NAME, RULES


def assemble(body: CodeBody) -> CodeType:
    """The code object that ``body`` describes; ``body`` is left as it is.

    Raises UnsupportedBytecodeError (CAP104) for a name that no slot has, an opcode that this version lacks, a jump
    that cannot go in its direction, or a stack whose depth is not the same on all ways to a place.
    """
    return assemble_with_offsets(body)[0]


def assemble_with_offsets(body: CodeBody) -> tuple[CodeType, dict[Instruction, int]]:
    """As ``assemble``, and the byte offset at which each instruction went."""
    pools = _Pools(body)
    units, first = _Lowering(body, pools).lower()
    _lay_out(units)
    offsets = {instruction: 2 * units[unit].start for instruction, unit in first.items()}
    code = CodeType(
        body.argcount, body.posonlyargcount, body.kwonlyargcount, len(pools.varnames), largest_depth(body),
        body.flags, _encode(units), tuple(pools.consts), tuple(pools.names),
        _true_names(pools.varnames), body.filename, body.name, body.qualname, body.first_line,
        encode_locations(body.first_line, ((unit.size, unit.position) for unit in units)),
        encode_exceptions(_exception_ranges(units)), _true_names(body.freevars), _true_names(body.cellvars),
    )  # fmt: skip
    return code, offsets


def _encode(units: list[_Unit]) -> bytes:
    out = bytearray()
    for unit in units:
        unit.encode(out)
    return bytes(out)


def _true_names(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.name if isinstance(name, Slot) else name for name in names)


def constant_key(value: object) -> object:
    """A key that is equal for constants that may share an index: 0.0 and -0.0, 1 and True have different ones."""
    kind = type(value)
    if value is None or value is Ellipsis or kind in (int, bool, str, bytes):
        return kind, value
    if isinstance(value, float) and kind is float:
        return kind, struct.pack("d", value)
    if isinstance(value, complex) and kind is complex:
        return kind, struct.pack("dd", value.real, value.imag)
    if isinstance(value, tuple) and kind is tuple:
        return kind, tuple(constant_key(item) for item in value)
    if isinstance(value, frozenset) and kind is frozenset:
        return kind, frozenset(constant_key(item) for item in value)
    return kind, id(value)


class _Pools:
    """Constants, names and slots, each with its index; what is new is appended."""

    def __init__(self, body: CodeBody) -> None:
        self.consts = list(body.consts)
        self.names = list(body.names)
        self.varnames = list(body.varnames)
        self._cellvars, self._freevars = body.cellvars, body.freevars
        self._const_index: dict[object, int] = {}
        for index, value in enumerate(self.consts):
            self._const_index.setdefault(constant_key(value), index)
        self._name_index = {name: index for index, name in reversed(list(enumerate(self.names)))}
        self._add_locals(body.instructions)
        own_cells = [name for name in body.cellvars if name not in self.varnames]
        self._slots = {name: index for index, name in enumerate([*self.varnames, *own_cells, *body.freevars])}

    def _add_locals(self, instructions: list[Instruction]) -> None:
        known = {*self.varnames, *self._cellvars, *self._freevars}
        for instruction in instructions:
            if instruction.opname in LOCAL:
                used: tuple[object, ...] = (instruction.argval,)
            elif instruction.opname in RULES.pairs and isinstance(instruction.argval, tuple):
                used = instruction.argval
            else:
                continue
            for name in used:
                if isinstance(name, str) and name not in known:
                    known.add(name)
                    self.varnames.append(name)

    def const(self, value: object) -> int:
        index = self._const_index.setdefault(constant_key(value), len(self.consts))
        if index == len(self.consts):
            self.consts.append(value)
        return index

    def name(self, name: object) -> int:
        if not isinstance(name, str):
            raise UnsupportedBytecodeError(NOT_ASSEMBLABLE, f"{name!r} is no name")
        index = self._name_index.setdefault(name, len(self.names))
        if index == len(self.names):
            self.names.append(name)
        return index

    def slot(self, name: object) -> int:
        if not isinstance(name, str) or name not in self._slots:
            raise UnsupportedBytecodeError(NOT_ASSEMBLABLE, f"no slot is named {name!r}")
        return self._slots[name]


@dataclass(slots=True, eq=False)
class _Unit:
    """One instruction to encode. ``jump`` is the index of the unit to jump to; ``start`` and ``size`` are in code
    units."""

    opname: str
    arg: int
    position: Position
    handler: Handler | None
    jump: int | None = None
    handler_at: int = -1
    prefixes: int = 0
    start: int = 0
    size: int = 0

    def encode(self, out: bytearray) -> None:
        for shift in range(8 * self.prefixes, 0, -8):
            out += bytes((dis.EXTENDED_ARG, self.arg >> shift & 0xFF))
        out += _ENCODED[self.opname]
        out[-2 * (self.size - self.prefixes) + 1] = self.arg & 0xFF


_ENCODED = {
    name: bytes((number, *bytes(1 + 2 * CACHE_SIZES.get(name, 0))))
    for name, number in dis.opmap.items()
    if number < 256
}
"""By opcode: its bytes with an argument of 0, and those of its caches. Larger numbers are the compiler's own."""

_SLOT = LOCAL | FREE
_PLAIN = frozenset(dis.opmap) - JUMP - NAME - RULES.pairs - {"LABEL"}
"""Opcodes of one unit, whose argument is a constant's index, a slot or a number."""


class _Lowering:
    """Instructions -> units: operands to numbers, jumps to unit indices in a direction that the version has."""

    def __init__(self, body: CodeBody, pools: _Pools) -> None:
        self._body = body
        self._pools = pools
        self._order = {instruction: index for index, instruction in enumerate(body.instructions)}

    def lower(self) -> tuple[list[_Unit], dict[Instruction, int]]:
        """The units, and for each instruction the index of its first one."""
        units: list[_Unit] = []
        first: dict[Instruction, int] = {}
        jumps: list[tuple[_Unit, Instruction]] = []
        for instruction in self._body.instructions:
            first[instruction] = len(units)
            opname = instruction.opname
            if opname in _PLAIN:
                arg = self._operand(opname, instruction)
                units.append(_Unit(opname, arg, instruction.position, instruction.handler))
                continue
            for opname, arg, target in self._forms(instruction):
                unit = _Unit(opname, arg, instruction.position, instruction.handler)
                if target is instruction:  # going round: skip the one unit that follows
                    unit.jump = len(units) + 2
                elif target is not None:
                    jumps.append((unit, target))
                units.append(unit)
        for unit, target in jumps:
            unit.jump = self._place(first, target)
        for unit in units:
            if unit.handler is not None:
                unit.handler_at = self._place(first, unit.handler.target)
        self._check_end(units, first)
        return units, first

    def _place(self, first: dict[Instruction, int], target: Instruction) -> int:
        if target not in first:
            raise UnsupportedBytecodeError(
                NOT_ASSEMBLABLE, f"a jump leads to {target!r}, which is not in {self._body.qualname}"
            )
        return first[target]

    def _check_end(self, units: list[_Unit], first: dict[Instruction, int]) -> None:
        if not units or len(units) in first.values():
            raise UnsupportedBytecodeError(
                NOT_ASSEMBLABLE, f"control runs off the end of {self._body.qualname}"
            )

    def _operand(self, opname: str, instruction: Instruction) -> int:
        """The argument of an instruction that is one unit."""
        if opname in CONSTANT:
            return self._pools.const(instruction.argval)
        return self._pools.slot(instruction.argval) if opname in _SLOT else instruction.arg

    def _forms(self, instruction: Instruction) -> Iterator[tuple[str, int, Instruction | None]]:
        name, argval = instruction.opname, instruction.argval
        if name == "LABEL":
            return
        if name in JUMP:
            yield from self._jump_forms(instruction)
        elif name not in dis.opmap:
            raise UnsupportedBytecodeError(NOT_ASSEMBLABLE, f"no opcode {name} in this CPython")
        elif name in NAME:
            bits = RULES.name_flags.get(name, 0)
            yield name, self._pools.name(argval) << bits | instruction.arg, None
        elif name in RULES.pairs and isinstance(argval, tuple):
            yield from self._pair_forms(name, argval)
        else:
            yield name, self._operand(name, instruction), None

    def _pair_forms(self, name: str, argval: tuple[object, ...]) -> Iterator[tuple[str, int, None]]:
        one, two = (self._pools.slot(item) for item in argval)
        if one < 16 and two < 16:
            yield name, one << 4 | two, None
            return
        halves = {
            "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
            "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
        }
        left, right = halves.get(name, ("STORE_FAST", "STORE_FAST"))
        yield left, one, None
        yield right, two, None

    def _jump_forms(self, instruction: Instruction) -> Iterator[tuple[str, int, Instruction]]:
        name, target = instruction.opname, instruction.target
        if target is None or target not in self._order:
            raise UnsupportedBytecodeError(NOT_ASSEMBLABLE, f"the jump {instruction!r} leads nowhere")
        backward = self._order[target] <= self._order[instruction]
        table = RULES.backward if backward else RULES.forward
        if name in table:
            yield table[name], 0, target
        elif name in RULES.inverted:
            yield RULES.inverted[name], 0, instruction
            yield RULES.backward["JUMP"], 0, target
        else:
            raise UnsupportedBytecodeError(
                NOT_ASSEMBLABLE, f"{name} cannot jump {'backward' if backward else 'forward'}"
            )


def _lay_out(units: list[_Unit]) -> None:
    """Set prefixes, starts and jump distances; prefixes only ever grow, so this ends."""
    jumps = [unit for unit in units if unit.jump is not None]
    for unit in units:
        unit.prefixes = _prefixes(unit.arg) if unit.arg > 255 else 0
        unit.size = unit.prefixes + len(_ENCODED[unit.opname]) // 2
    changed = True
    while changed:
        changed = False
        place = 0
        for unit in units:
            unit.start = place
            place += unit.size
        for unit in jumps:
            assert unit.jump is not None
            unit.arg = abs(units[unit.jump].start - (unit.start + unit.size))
            grown = _prefixes(unit.arg) - unit.prefixes
            if grown > 0:
                unit.prefixes += grown
                unit.size += grown
                changed = True


def _prefixes(arg: int) -> int:
    return max(0, (arg.bit_length() - 1) // 8)


def _exception_ranges(units: list[_Unit]) -> Iterator[ExceptionRange]:
    start = end = 0
    last: tuple[int, int, bool] | None = None
    for unit in units:
        handler = unit.handler
        current = None if handler is None else (unit.handler_at, handler.depth, handler.push_lasti)
        if current != last:
            if last is not None:
                yield ExceptionRange(start, end, units[last[0]].start, *last[1:])
            start, last = unit.start, current
        end = unit.start + unit.size
    if last is not None:
        yield ExceptionRange(start, end, units[last[0]].start, *last[1:])
