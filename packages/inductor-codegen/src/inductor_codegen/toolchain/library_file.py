"""What a compiler made is looked at before it is believed: a whole ELF library for this machine, with our symbols.

A file that was cut off, filled with zeros or made for something else maps without an error and ends the process later
(SIGBUS, SIGILL), in this process or in all that load it from the cache.
"""

from __future__ import annotations

import functools
import struct
import sys
from collections.abc import Sequence

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SHARED_OBJECT, _LOAD, _NO_BITS, _DYNAMIC_SYMBOLS = 3, 1, 8, 11
_EMPTY = bytes(1024)
"""Code never has as many zeros on end."""


def faults(data: bytes, symbols: Sequence[str]) -> list[str]:
    """What is wrong with a library's content: nothing, if it may be loaded. On other systems than Linux only that it
    is not empty is asked."""
    if not sys.platform.startswith("linux"):
        return [] if data else ["the file is empty"]
    try:
        return _elf_faults(data, symbols)
    except (struct.error, IndexError, ValueError) as error:
        return [f"the file is cut off ({error})"]


def _elf_faults(data: bytes, symbols: Sequence[str]) -> list[str]:
    if data[:4] != b"\x7fELF":
        return ["the file is empty" if not data else "the file is not a library"]
    identity, kind, machine, _, _, programs, sections, _, _, _, program_count, _, section_count, _ = (
        _HEADER.unpack_from(data)
    )
    if identity[:6] != _own_header()[:6] or kind != _SHARED_OBJECT or machine != _own_machine():
        return ["the library is for another machine"]
    found = []
    for at in range(program_count):
        kind, flags, offset, _, _, size, _, _ = _PROGRAM.unpack_from(data, programs + at * _PROGRAM.size)
        if offset + size > len(data):
            found.append("a segment ends beyond the file")
        elif kind == _LOAD and flags & 1 and _EMPTY in data[offset : offset + size]:
            found.append("a part of the code is empty")
    table = [_SECTION.unpack_from(data, sections + at * _SECTION.size) for at in range(section_count)]
    if any(kind != _NO_BITS and offset + size > len(data) for _, kind, _, _, offset, size, *_ in table):
        found.append("a section ends beyond the file")
    if not program_count or not table:
        found.append("the library has no content")
    return found or _missing(data, table, symbols)


def _missing(data: bytes, table: Sequence[tuple[int, ...]], symbols: Sequence[str]) -> list[str]:
    exported: set[bytes] = set()
    for _, kind, _, _, offset, size, link, *_ in table:
        if kind != _DYNAMIC_SYMBOLS:
            continue
        start = table[link][4]
        for at in range(offset, offset + size, _SYMBOL.size):
            name, _, _, section, _, _ = _SYMBOL.unpack_from(data, at)
            if section:
                exported.add(data[start + name : data.index(b"\0", start + name)])
    return [f"{name} is missing" for name in symbols if name.encode() not in exported]


@functools.cache
def _own_header() -> bytes:
    """The first bytes of the program that runs: its class, byte order and machine are those that we can load."""
    with open("/proc/self/exe", "rb") as file:
        return file.read(_HEADER.size)


def _own_machine() -> int:
    return int.from_bytes(_own_header()[18:20], sys.byteorder)
