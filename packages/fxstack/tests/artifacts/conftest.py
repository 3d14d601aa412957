"""Random changes of files."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest


@pytest.fixture
def mutated() -> Callable[[bytes, random.Random], bytes]:
    """``mutated(data, draw)`` is another file, most likely: bits, bytes, runs, cuts, additions and moves."""
    return _mutated


def _mutated(data: bytes, draw: random.Random) -> bytes:
    made = bytearray(data)
    at = draw.randrange(len(data))
    near = draw.choice((draw.randrange(200), len(data) - 1 - draw.randrange(400), at))
    length = draw.randrange(1, 64)
    match draw.randrange(8):
        case 0:
            made[near] ^= 1 << draw.randrange(8)
        case 1:
            made[near] = draw.randrange(256)
        case 2:
            made[near : near + length] = draw.randbytes(length)
        case 3:
            del made[at:]
        case 4:
            del made[near : near + length]
        case 5:
            made[near:near] = draw.randbytes(length)
        case 6:
            made += draw.randbytes(length)
        case 7:
            other = draw.randrange(len(data))
            made[near : near + length] = made[other : other + length]
    return bytes(made)
