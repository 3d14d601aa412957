"""The checksum, by a second implementation of what ``csrc/core/checksum.c`` says, and by damage that it must tell."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest

from fxstack_artifact import _native

SPREAD, STEP, JOIN = 0xB5297A4D68E31DA5, 0x9E6C63D0876A9A35, 0xC7A1F36D5B2E8C93
ALL = (1 << 64) - 1


def mixed(word: int, by: int) -> int:
    return (word ^ word >> 32) * by & ALL


def reference(content: bytes) -> str:
    rows = -(-len(content) // 256)
    padded = content.ljust(rows * 256, b"\0")
    joined = len(content)
    for strip in range(4):
        start = strip * rows * 64
        for word in range(8):
            state = (strip * 8 + word + 1) * JOIN & ALL
            for row in range(rows):
                at = start + row * 64 + word * 8
                state = mixed(int.from_bytes(padded[at : at + 8], "little") * SPREAD & ALL ^ state, STEP)
            joined = mixed(joined ^ state, JOIN)
    return f"{mixed(mixed(joined, STEP), JOIN):016x}"


SIZES = [*range(0, 300, 7), 191, 192, 193, 255, 256, 257, 511, 512, 513, 767, 1023, 1024, 1025, 4096, 70001]


@pytest.mark.parametrize("level", _native.cpu_levels())
def test_every_level_computes_what_is_said(level: str) -> None:
    content = random.Random(0).randbytes(max(SIZES) + 1)
    for size in SIZES:
        want = reference(content[1 : size + 1])
        assert _native.checksum(memoryview(content)[1 : size + 1], level) == want, size


def test_it_stays_as_it_is() -> None:
    """Files that were written have it."""
    assert _native.checksum(b"") == reference(b"") == "b735e59338052896"
    assert _native.checksum(bytes(range(256)) * 5) == "5cf1ee74747b4dfa"


def test_a_level_that_this_processor_lacks() -> None:
    with pytest.raises(ValueError, match="does not run armv99"):
        _native.checksum(b"", "armv99")


PAGE = 4096
CONTENTS = {
    "zeros": bytes(8 * PAGE),
    "ones": b"\xff" * (8 * PAGE),
    "small numbers": b"".join(i.to_bytes(4, "little") for i in range(2 * PAGE)),
    "noise": random.Random(1).randbytes(8 * PAGE),
    "short": random.Random(2).randbytes(77),
    "odd": random.Random(3).randbytes(3 * PAGE + 13),
}


def all_differ(changes: Iterator[bytes]) -> None:
    """Contents that differ have checksums that do."""
    contents = set(changes)
    assert len({_native.checksum(content) for content in contents}) == len(contents) > 1


@pytest.mark.parametrize("name", CONTENTS)
def test_a_few_bits(name: str) -> None:
    """Also such as lie where the same state takes them, one row after the other: the signs of floats above all."""
    good, draw = CONTENTS[name], random.Random(name)
    count = len(good) * 8

    def changes() -> Iterator[bytes]:
        yield good
        for _ in range(3000):
            for number in range(1, 5):
                yield flipped(good, draw.sample(range(count), number))
        if count < 3 * 512:
            return
        for _ in range(3000):
            word, row = 64 * draw.randrange(8), 512 * draw.randrange(count // 2048)
            bits = [word + row + bit for bit in (0, 7, 15, 23, 30, 31, 32, 55, 62, 63)]
            near = [bit + 512 * later for bit in bits for later in range(3) if bit + 512 * later < count]
            yield flipped(good, draw.sample(near, draw.randrange(1, 5)))

    all_differ(changes())


def flipped(good: bytes, bits: list[int]) -> bytes:
    made = bytearray(good)
    for bit in bits:
        made[bit // 8] ^= 1 << bit % 8
    return bytes(made)


def test_every_pair_and_triple_of_signs() -> None:
    """Three changes of high bits in one state, of which two make one that takes the third back: words that went into
    states as they are would have had equal sums."""
    tops = [word * 64 + bit for word in (0, 8, 16, 24) for bit in (15, 30, 31, 47, 62, 63)]
    for good in (CONTENTS["zeros"][:1024], CONTENTS["noise"][:1024]):
        triples = itertools.combinations(tops, 3)
        all_differ(flipped(good, list(bits)) for bits in [*itertools.combinations(tops, 2), *triples])


@pytest.mark.parametrize("name", CONTENTS)
def test_bytes_runs_and_lengths(name: str) -> None:
    good, draw = CONTENTS[name], random.Random(name)

    def changes() -> Iterator[bytes]:
        yield good
        for _ in range(3000):
            at, length = draw.randrange(len(good)), draw.randrange(1, 17)
            yield good[:at] + draw.randbytes(length)[: len(good) - at] + good[at + length :]
            yield good[:at] + good[at + length :]
            yield good[:at] + draw.randbytes(length) + good[at:]
        for length in range(600):
            yield good + bytes(length)
            yield good[: max(len(good) - length, 0)]

    all_differ(changes())


@pytest.mark.parametrize("unit", [4, 8, 64, 256, 512, PAGE])
def test_swapped_moved_and_zeroed_blocks(unit: int) -> None:
    good = random.Random(4).randbytes(16 * PAGE)
    blocks = [good[start : start + unit] for start in range(0, len(good), unit)]
    draw = random.Random(unit)

    def changes() -> Iterator[bytes]:
        yield good
        for _ in range(1000):
            made = list(blocks)
            a, b = sorted(draw.sample(range(len(made)), 2))
            match draw.randrange(4):
                case 0:
                    made[a], made[b] = made[b], made[a]
                case 1:
                    made[a] = bytes(unit)
                case 2:
                    made[b] = made[a]
                case 3:
                    made.insert(a, made.pop(b))
            yield b"".join(made)

    all_differ(changes())


def test_small_contents_are_spread() -> None:
    """No bit of it is bound to one of the content: each changes with half of the single bits."""
    base = int(_native.checksum(bytes(64)), 16)
    changed = [int(_native.checksum((1 << bit).to_bytes(64, "little")), 16) ^ base for bit in range(512)]
    for bit in range(64):
        assert 180 < sum(word >> bit & 1 for word in changed) < 332, bit
