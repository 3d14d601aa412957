"""BLAKE3 of contents, in pieces, so that several processors can check a large one."""

from __future__ import annotations

import os
from collections.abc import Sequence

from fxstack_artifact import _native

PIECE = 8 << 20
"""Bytes of a piece; part of the format."""
_WORTH_THREADS = 4 * PIECE


def digest(data: bytes | memoryview) -> str:
    """BLAKE3 in hexadecimal digits."""
    return _native.digest(data)


def digests(data: bytes | memoryview) -> list[str]:
    """Those of all pieces; an empty content has one piece."""
    pieces = [data[start : start + PIECE] for start in range(0, max(len(data), 1), PIECE)]
    count = min(len(pieces), _processors())
    if len(data) < _WORTH_THREADS or count < 2:
        return list(map(digest, pieces))
    from concurrent.futures import ThreadPoolExecutor  # which small files do not need

    with ThreadPoolExecutor(max_workers=count) as pool:
        return list(pool.map(digest, pieces))


def _processors() -> int:
    """Those that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def fits(data: bytes | memoryview, stated: Sequence[str]) -> bool:
    """Whether a content has these digests."""
    return digests(data) == list(stated)


def is_of_version_1(manifest: bytes, stated: str) -> bool:
    """Whether a manifest is whole, in a file of the format's first version, which hashed by SHA-256."""
    import hashlib  # which files of this version do not need

    return hashlib.sha256(manifest).hexdigest() == stated
