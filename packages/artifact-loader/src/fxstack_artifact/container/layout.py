"""The bytes of an artifact around its contents: a zip file of stored entries in which nothing is left to choice.

What reads a file makes these bytes again from the names, sizes and checksums that it finds, and compares, so that no
byte of a file goes unchecked.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import NamedTuple

ALIGNMENT = 64
"""Contents begin at multiples of this many bytes, so that they can be used where they are mapped."""
LARGEST = 0xFFFFFFFF - (1 << 20)
"""Bytes of a whole file; zip's 64-bit form is not used."""
MOST_ENTRIES = 4096
DIGEST_LENGTH = 64

_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_END = struct.Struct("<4sHHHHIIH")
_VERSION, _FLAGS, _STORED, _TIME, _DATE = 20, 0x800, 0, 0, 0x21
_MADE_ON_UNIX, _ATTRIBUTES = 0x314, 0o100644 << 16
_PADDING = 0xFA57
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*", re.ASCII)

END_LENGTH = _END.size + DIGEST_LENGTH
"""The last bytes of a file: the end record and the manifest's digest."""


class Entry(NamedTuple):
    """A content in the file: ``offset`` of its header, ``start`` of its bytes."""

    name: str
    size: int
    crc: int
    offset: int

    @property
    def start(self) -> int:
        """Where the content begins."""
        return self.offset + len(local_header(self))


def is_name(name: str) -> bool:
    """Whether an entry may be called so: a relative path of plain letters."""
    return len(name) <= 200 and _NAME.fullmatch(name) is not None


def local_header(entry: Entry) -> bytes:
    """What stands before a content, padded so that the content is aligned."""
    name = entry.name.encode()
    padding = -(entry.offset + _LOCAL.size + len(name)) % ALIGNMENT
    if 0 < padding < 4:
        padding += ALIGNMENT
    extra = struct.pack("<HH", _PADDING, padding - 4).ljust(padding, b"\0") if padding else b""
    fixed = (b"PK\3\4", _VERSION, _FLAGS, _STORED, _TIME, _DATE)
    return _LOCAL.pack(*fixed, entry.crc, entry.size, entry.size, len(name), padding) + name + extra


def tail(entries: Sequence[Entry], offset: int, digest: str) -> bytes:
    """What stands behind all contents, at ``offset``: the directory, the end, and the manifest's digest."""
    records = b"".join(map(_record, entries))
    count = len(entries)
    end = _END.pack(b"PK\5\6", 0, 0, count, count, len(records), offset, DIGEST_LENGTH)
    return records + end + digest.encode()


def directory(data: memoryview) -> tuple[list[Entry], str]:
    """The entries and the digest that a file's directory states, still to be compared with what they should look like.

    ValueError or struct.error where there is none.
    """
    if len(data) < END_LENGTH:
        raise ValueError("it is too short")
    mark, *_, count, _, offset, comment = _END.unpack_from(data, len(data) - END_LENGTH)
    if mark != b"PK\5\6" or comment != DIGEST_LENGTH or count > MOST_ENTRIES:
        raise ValueError("its end is missing")
    entries = []
    for _ in range(count):
        mark, *_, crc, size, _, length, _, _, _, _, _, start = _CENTRAL.unpack_from(data, offset)
        offset += _CENTRAL.size
        name = bytes(data[offset : offset + length]).decode("ascii")
        offset += length
        if mark != b"PK\1\2" or not is_name(name):
            raise ValueError("its directory is broken")
        entries.append(Entry(name, size, crc, start))
    return entries, bytes(data[len(data) - DIGEST_LENGTH :]).decode("ascii")


def _record(entry: Entry) -> bytes:
    name = entry.name.encode()
    fixed = (b"PK\1\2", _MADE_ON_UNIX, _VERSION, _FLAGS, _STORED, _TIME, _DATE)
    sizes = (entry.crc, entry.size, entry.size, len(name))
    return _CENTRAL.pack(*fixed, *sizes, 0, 0, 0, 0, _ATTRIBUTES, entry.offset) + name
