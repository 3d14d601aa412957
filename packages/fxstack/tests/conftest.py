"""One thread, one seed, a cache of the tests' own (the user's is neither read nor written), and changed files."""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

import fxstack

sys.path.insert(0, str(Path(__file__).parent))  # for python_processes


@pytest.fixture(autouse=True)
def temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports that a test provokes are written to its own folder."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))


@pytest.fixture(autouse=True)
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """``$FXSTACK_CACHE_DIR``, empty at the start of every test; defects of the compiler are raised."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("FXSTACK_CACHE_DIR", str(folder))
    monkeypatch.setenv("FXSTACK_ON_INTERNAL_ERROR", "raise")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield folder
    torch.set_num_threads(before)
    fxstack.reset()


@pytest.fixture
def mutated() -> Callable[[bytes, random.Random], bytes]:
    """``mutated(data, draw)`` is another file, most likely: bits, bytes, runs, cuts, additions and moves."""
    return _mutated


def _mutated(data: bytes, draw: random.Random) -> bytes:
    made = bytearray(data)
    at = draw.randrange(len(data))
    near = draw.choice((draw.randrange(200), len(data) - 1 - draw.randrange(400), at)) % len(data)
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
