"""The two byte tables of a code object: where instructions come from, and which handler protects them.

Formats: CPython's Objects/locations.md and Objects/exception_handling_notes.txt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dynamo_capture.bytecode.instruction import Position

_MOST_UNITS = 8
"""Code units that one location entry covers at most."""
_ONE_LINE, _NO_COLUMNS, _LONG, _NONE = 10, 13, 14, 15
"""Entry kinds; kinds 0 to 9 are the short form, 10 to 12 one line 0 to 2 further on."""


class ExceptionRange(NamedTuple):
    """One exception-table entry; places are in code units."""

    start: int
    end: int
    target: int
    depth: int
    push_lasti: bool


def encode_locations(first_line: int, runs: Iterable[tuple[int, Position]]) -> bytes:
    """The location table of instructions given as (code units, position), in order."""
    table = bytearray()
    line = first_line
    for units, position in _merged(runs):
        while units > 0:
            taken = min(units, _MOST_UNITS)
            line = _append_location(table, taken, position, line)
            units -= taken
    return bytes(table)


def _merged(runs: Iterable[tuple[int, Position]]) -> Iterator[tuple[int, Position]]:
    total, last = 0, Position()
    for units, position in runs:
        if total and position != last:
            yield total, last
            total = 0
        total, last = total + units, position
    if total:
        yield total, last


def _append_location(table: bytearray, units: int, position: Position, line: int) -> int:
    """Append one entry and return the line that the next one counts from."""
    if position.line is None:
        table.append(_head(_NONE, units))
        return line
    delta = position.line - line
    end_line = position.line if position.end_line is None else position.end_line
    column, end = position.column, position.end_column
    if column is None or end is None:
        column = end = None
    if column is None and end_line == position.line:
        table.append(_head(_NO_COLUMNS, units))
        _append_signed(table, delta)
    elif (
        column is None
        or end is None
        or not _append_compact(table, units, delta, end_line - position.line, column, end)
    ):
        table.append(_head(_LONG, units))
        _append_signed(table, delta)
        _append_unsigned(table, end_line - position.line)
        _append_unsigned(table, 0 if column is None else column + 1)
        _append_unsigned(table, 0 if end is None else end + 1)
    return position.line


def _append_compact(table: bytearray, units: int, delta: int, lines: int, column: int, end: int) -> bool:
    if lines != 0 or not 0 <= delta <= 2:
        return False
    if delta == 0 and column < 80 and 0 <= end - column < 16:
        table += bytes((_head(column >> 3, units), (column & 7) << 4 | (end - column)))
        return True
    if column < 128 and end < 128:
        table += bytes((_head(_ONE_LINE + delta, units), column, end))
        return True
    return False


def _head(kind: int, units: int) -> int:
    return 0x80 | kind << 3 | (units - 1)


def _append_unsigned(table: bytearray, value: int) -> None:
    """Little-endian groups of six bits, bit 6 set while more follow."""
    while value >= 64:
        table.append(0x40 | value & 0x3F)
        value >>= 6
    table.append(value)


def _append_signed(table: bytearray, value: int) -> None:
    _append_unsigned(table, -value << 1 | 1 if value < 0 else value << 1)


def decode_exceptions(table: bytes) -> list[ExceptionRange]:
    """The entries of an exception table, in order."""
    numbers = _numbers(table)
    return [
        ExceptionRange(start, start + length, target, packed >> 1, bool(packed & 1))
        for start, length, target, packed in zip(numbers, numbers, numbers, numbers, strict=True)
    ]


def _numbers(table: bytes) -> Iterator[int]:
    """Big-endian groups of six bits, bit 6 set while more follow."""
    value = 0
    for byte in table:
        value = value << 6 | byte & 0x3F
        if not byte & 0x40:
            yield value
            value = 0


def encode_exceptions(ranges: Iterable[ExceptionRange]) -> bytes:
    """The exception table of ranges given in order of their start."""
    table = bytearray()
    for entry in ranges:
        first = len(table)
        packed = entry.depth << 1 | entry.push_lasti
        for value in (entry.start, entry.end - entry.start, entry.target, packed):
            _append_big_endian(table, value)
        table[first] |= 0x80
    return bytes(table)


def _append_big_endian(table: bytearray, value: int) -> None:
    groups = [value & 0x3F]
    while value := value >> 6:
        groups.append(value & 0x3F | 0x40)
    table += bytes(reversed(groups))
