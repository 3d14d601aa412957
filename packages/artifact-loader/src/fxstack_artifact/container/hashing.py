"""Hashes of contents, in pieces, so that several processors can check a large one.

A signed file has BLAKE3, which tells any change. One that is not signed has checksums, which are computed as fast as
memory is read and tell damage: a change made on purpose is no matter of hashes where anybody can write them anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from fxstack_artifact import _native

PIECE = 8 << 20
"""Bytes of a piece; part of the format."""
_WORTH_THREADS = 4 * PIECE
BLAKE3, CHECKSUM = "blake3", "checksum"
"""Kinds of hashes, by their names in a manifest."""


def digest(data: bytes | memoryview) -> str:
    """BLAKE3 in hexadecimal digits."""
    return _native.digest(data)


def checksum(data: bytes | memoryview) -> str:
    """64 bits that tell damage (``csrc/core/checksum.h``), in hexadecimal digits."""
    return _native.checksum(data)


_HASHES: Final[Mapping[str, Callable[[bytes | memoryview], str]]] = MappingProxyType(
    {BLAKE3: digest, CHECKSUM: checksum}
)


def digests(data: bytes | memoryview, kind: str) -> list[str]:
    """Those of all pieces; an empty content has one piece."""
    hash_of, pieces = _HASHES[kind], pieces_of(data)
    count = min(len(pieces), _processors())
    if len(data) < _WORTH_THREADS or count < 2:
        return list(map(hash_of, pieces))
    from concurrent.futures import ThreadPoolExecutor  # which small files do not need

    with ThreadPoolExecutor(max_workers=count) as pool:
        return list(pool.map(hash_of, pieces))


def pieces_of(data: bytes | memoryview) -> list[bytes | memoryview]:
    """What is hashed by itself."""
    return [data[start : start + PIECE] for start in range(0, max(len(data), 1), PIECE)]


def _processors() -> int:
    """Those that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def fits(data: bytes | memoryview, stated: Sequence[str], kind: str) -> bool:
    """Whether a content has these hashes."""
    return digests(data, kind) == list(stated)


def is_of_version_1(manifest: bytes, stated: str) -> bool:
    """Whether a manifest is whole, in a file of the format's first version, which hashed by SHA-256."""
    import hashlib  # which files of this version do not need

    return hashlib.sha256(manifest).hexdigest() == stated
