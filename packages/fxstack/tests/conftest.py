"""One thread, one seed, and a cache of the tests' own: the user's is neither read nor written."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import fxstack


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
