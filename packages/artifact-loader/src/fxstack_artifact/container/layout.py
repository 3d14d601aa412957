"""The bytes of a sealed file around its contents: a zip file of stored entries in which nothing is left to choice.

What reads a file makes these bytes again from the names, sizes and checksums that it finds, and compares, so that no
byte of a file goes unchecked. A file of 4 GB or more has zip's 64-bit form throughout, a smaller one nowhere.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import NamedTuple

ALIGNMENT = 64
"""Contents begin at multiples of this many bytes, so that they can be used where they are mapped."""
LARGEST_NARROW = 0xFFFFFFFF - (1 << 20)
"""Bytes of all contents together from which on a file has the 64-bit form."""
MOST_ENTRIES = 0xFFFE
DIGEST_LENGTH = 64

_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_END = struct.Struct("<4sHHHHIIH")
_WIDE_END = struct.Struct("<4sQHHIIQQQQ")
_WIDE_LOCATOR = struct.Struct("<4sIQI")
_WIDE_SIZES, _WIDE_PLACE = struct.Struct("<HHQQ"), struct.Struct("<HHQQQ")
_FLAGS, _STORED, _TIME, _DATE = 0x800, 0, 0, 0x21
_NARROW, _WIDE = 20, 45
"""Versions of zip that are needed to read one."""
_UNIX, _ATTRIBUTES = 0x300, 0o100644 << 16
_WIDE_FIELD, _PADDING = 1, 0xFA57
_ELSEWHERE = 0xFFFFFFFF
"""A number of 32 bits that says: it is in the 64-bit field."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*", re.ASCII)

END_LENGTH = _END.size + DIGEST_LENGTH
"""The last bytes of a file: the end record and the digest of manifest and signature."""


class Entry(NamedTuple):
    """A content in the file: ``offset`` of its header, ``start`` of its bytes; ``wide``: the file has 64-bit form."""

    name: str
    size: int
    crc: int
    offset: int
    wide: bool = False

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
    sizes = _WIDE_SIZES.pack(_WIDE_FIELD, 16, entry.size, entry.size) if entry.wide else b""
    padding = -(entry.offset + _LOCAL.size + len(name) + len(sizes)) % ALIGNMENT
    if 0 < padding < 4:
        padding += ALIGNMENT
    filler = struct.pack("<HH", _PADDING, padding - 4).ljust(padding, b"\0") if padding else b""
    extra = sizes + filler
    size = _ELSEWHERE if entry.wide else entry.size
    fixed = (b"PK\3\4", _WIDE if entry.wide else _NARROW, _FLAGS, _STORED, _TIME, _DATE)
    return _LOCAL.pack(*fixed, entry.crc, size, size, len(name), len(extra)) + name + extra


def tail(entries: Sequence[Entry], offset: int, digest: str) -> bytes:
    """What stands behind all contents, at ``offset``: the directory, the end, and the digest."""
    records = b"".join(map(_record, entries))
    count = len(entries)
    if not entries or not entries[0].wide:
        end = _END.pack(b"PK\5\6", 0, 0, count, count, len(records), offset, DIGEST_LENGTH)
        return records + end + digest.encode()
    place = offset + len(records)
    wide = _WIDE_END.pack(
        b"PK\6\6", _WIDE_END.size - 12, _UNIX | _WIDE, _WIDE, 0, 0, count, count, len(records), offset
    )
    locator = _WIDE_LOCATOR.pack(b"PK\6\7", 0, place, 1)
    end = _END.pack(b"PK\5\6", 0, 0, count, count, _ELSEWHERE, _ELSEWHERE, DIGEST_LENGTH)
    return records + wide + locator + end + digest.encode()


def directory(data: memoryview) -> tuple[list[Entry], str]:
    """The entries and the digest that a file's directory states, still to be compared with what they should look like.

    ValueError or struct.error where there is none.
    """
    if len(data) < END_LENGTH:
        raise ValueError("it is too short")
    end = len(data) - END_LENGTH
    mark, *_, count, _, offset, comment = _END.unpack_from(data, end)
    if mark != b"PK\5\6" or comment != DIGEST_LENGTH or count > MOST_ENTRIES:
        raise ValueError("its end is missing")
    wide = offset == _ELSEWHERE
    if wide:
        place = _WIDE_LOCATOR.unpack_from(data, max(end - _WIDE_LOCATOR.size, 0))[2]
        offset = _WIDE_END.unpack_from(data, min(place, len(data)))[9]
    entries = []
    for _ in range(count):
        if offset > len(data):
            raise ValueError("its directory is broken")
        mark, *_, crc, size, _, length, extra, _, _, _, _, start = _CENTRAL.unpack_from(data, offset)
        offset += _CENTRAL.size
        name = bytes(data[offset : offset + length]).decode("ascii")
        offset += length
        if mark != b"PK\1\2" or not is_name(name):
            raise ValueError("its directory is broken")
        if wide:
            _, _, size, _, start = _WIDE_PLACE.unpack_from(data, offset)
            offset += extra
        entries.append(Entry(name, size, crc, start, wide))
    return entries, bytes(data[len(data) - DIGEST_LENGTH :]).decode("ascii")


def _record(entry: Entry) -> bytes:
    name = entry.name.encode()
    version = _WIDE if entry.wide else _NARROW
    fixed = (b"PK\1\2", _UNIX | version, version, _FLAGS, _STORED, _TIME, _DATE)
    size, offset, extra = entry.size, entry.offset, b""
    if entry.wide:
        extra = _WIDE_PLACE.pack(_WIDE_FIELD, 24, size, size, offset)
        size = offset = _ELSEWHERE
    sizes = (entry.crc, size, size, len(name))
    return _CENTRAL.pack(*fixed, *sizes, len(extra), 0, 0, 0, _ATTRIBUTES, offset) + name + extra
