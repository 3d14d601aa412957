"""A cache with something in it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import fxstack
from inductor_codegen.cache import ArtifactStore

X = torch.arange(6.0)


@pytest.fixture
def compiled(cache_dir: Path) -> ArtifactStore:
    """The cache after one function was compiled."""
    run()
    return ArtifactStore(cache_dir)


def run(**options: Any) -> torch.Tensor:
    """Compile and run a function."""

    def f(x: torch.Tensor) -> torch.Tensor:
        return (x.sin() + 1).sum(0)

    fxstack.reset()
    made: torch.Tensor = fxstack.compile(f, options=options)(X)
    return made


@pytest.fixture
def elsewhere(tmp_path: Path) -> ArtifactStore:
    """An empty cache."""
    return ArtifactStore(tmp_path / "elsewhere")


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    """Files with a private and its public key."""
    pytest.importorskip("cryptography", reason="the optional package cryptography signs and checks")
    return tmp_path / "key", fxstack.make_key(tmp_path / "key")


@pytest.fixture
def url() -> str:
    """A remote cache in memory."""
    pytest.importorskip("fsspec", reason="the optional package fsspec reaches remote caches")
    return f"memory://{uuid.uuid4().hex}/cache"


Run = Callable[..., torch.Tensor]


@pytest.fixture(name="run")
def run_again() -> Run:
    """``run(**options)``."""
    return run
