"""Fixtures of the integration tests: a cache of their own, wheels of every package, one thread, one seed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("FXSTACK_ON_INTERNAL_ERROR", "raise")
ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True, scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One cache for the session, so that the user's own is neither read nor written."""
    folder = tmp_path_factory.mktemp("cache")
    before = os.environ.get("FXSTACK_CACHE_DIR")
    os.environ["FXSTACK_CACHE_DIR"] = str(folder)
    yield folder
    if before is None:
        del os.environ["FXSTACK_CACHE_DIR"]
    else:
        os.environ["FXSTACK_CACHE_DIR"] = before


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wheel of every package and of the example backend."""
    folder = tmp_path_factory.mktemp("wheels")
    sources = [*sorted((ROOT / "packages").iterdir()), ROOT / "integration_tests" / "example_backend"]
    for source in sources:
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
        subprocess.run([*command, "--wheel-dir", str(folder), str(source)], check=True)
    return folder


@pytest.fixture(scope="session")
def clean_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a virtual environment that holds torch and nothing of ours."""
    folder = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    version = torch.__version__.split("+")[0]
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", f"torch=={version}"], check=True)
    return python
