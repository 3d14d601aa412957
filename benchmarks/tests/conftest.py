"""One thread, one seed, and a cache of the tests' own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import fxstack


@pytest.fixture(autouse=True)
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """``$FXSTACK_CACHE_DIR``, empty at the start of every test; defects of the compiler are raised."""
    monkeypatch.setenv("FXSTACK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("FXSTACK_ON_INTERNAL_ERROR", "raise")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(before)
    fxstack.reset()
