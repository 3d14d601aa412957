"""BLAKE3, by values of its authors' test vectors: bytes that count from 0 to 250 and begin anew."""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Callable

import pytest

from fxstack_artifact import _native
from fxstack_artifact.container.hashing import BLAKE3, CHECKSUM, PIECE, digests, fits

KNOWN = {
    0: "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
    1: "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
    64: "4eed7141ea4a5cd4b788606bd23f46e212af9cacebacdc7d1f4c6dc7f2511b98",
    65: "de1e5fa0be70df6d2be8fffd0e99ceaa8eb6e8c93a63f2d8d1c30ecb6b263dee",
    1023: "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11",
    1024: "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7",
    1025: "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444",
    2048: "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a",
    2049: "5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030",
    3072: "b98cb0ff3623be03326b373de6b9095218513e64f1ee2edd2525c7ad1e5cffd2",
    16384: "f875d6646de28985646f34ee13be9a576fd515f76b5b0a26bb324735041ddde4",
    16385: "1dabe216be2578830263b049de1639f39f05a4da616b9b78c7a5e4e41662fd1f",
    17409: "50bc54238ac9271c9f3471f5206a04eb25d2e26b3214ed971cc55230b0d22864",
    33792: "2e87991ba4054e53240ccea4ee7eb6f6b24c366c8dfe8e52306026918870c229",
    100000: "d93c23eedaf165a7e0be908ba86f1a7a520d568d2d13cde787c8580c5c72cc54",
}


@pytest.mark.parametrize("level", _native.cpu_levels())
@pytest.mark.parametrize("size", KNOWN)
def test_known_digests(size: int, level: str) -> None:
    content = bytes(i % 251 for i in range(251)) * (size // 251 + 1)
    assert _native.digest(content[:size], level) == KNOWN[size]
    assert _native.digest(memoryview(b"x" + content)[1 : size + 1], level) == KNOWN[size]


def test_every_number_of_chunks() -> None:
    """Widths divide them in different ways: one result for all."""
    content = bytes(i * 7 % 251 for i in range(40 << 10))
    for size in range(1 << 10, len(content), 509):
        found = {_native.digest(content[:size], level) for level in _native.cpu_levels()}
        assert found == {_native.digest(content[:size])}, size


def test_a_level_that_this_processor_lacks() -> None:
    with pytest.raises(ValueError, match="does not run armv99"):
        _native.digest(b"", "armv99")


@pytest.mark.parametrize(("kind", "one"), [(BLAKE3, _native.digest), (CHECKSUM, _native.checksum)])
def test_pieces(kind: str, one: Callable[[bytes], str]) -> None:
    content = bytes(5 * PIECE + 3)
    found = digests(content, kind)
    assert len(found) == 6
    assert found == [*[one(bytes(PIECE))] * 5, one(bytes(3))]
    assert fits(content, found, kind)
    assert not fits(content[:-1] + b"\1", found, kind)
    assert digests(b"", kind) == [one(b"")]


def test_one_processor_needs_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts is where the process may run, not what the machine has."""

    def refuse(**_: object) -> None:
        raise AssertionError("threads were started")

    monkeypatch.setattr(concurrent.futures, "ThreadPoolExecutor", refuse)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0})
    assert len(digests(bytes(5 * PIECE), BLAKE3)) == 5
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    with pytest.raises(AssertionError, match="threads were started"):
        digests(bytes(5 * PIECE), BLAKE3)
