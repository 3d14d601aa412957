"""Fixtures of the integration tests: a cache of their own, wheels of every package, one thread, one seed."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
import torch
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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


@pytest.fixture
def full_precision() -> Iterator[None]:
    """Products of float32 on a GPU are not rounded to TF32; Triton is needed."""
    pytest.importorskip("triton")
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    yield
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wheel of every package and of the example backend."""
    folder = tmp_path_factory.mktemp("wheels")
    sources = [*sorted((ROOT / "packages").iterdir()), ROOT / "integration_tests" / "example_backend"]
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(folder), *map(str, sources)], check=True)
    return folder


@pytest.fixture(scope="session")
def clean_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a virtual environment that holds pip, torch and what torch needs, and nothing of ours.

    They are links to what is installed here: installing torch again takes a minute and the network.
    """
    folder = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    inside = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    for distribution in (*_with_requirements("torch"), metadata.distribution("pip")):
        for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            if not (inside / top).exists():  # several distributions have parts of one folder, as nvidia
                (inside / top).symlink_to(distribution.locate_file(top))
    return folder / "bin" / "python"


def _with_requirements(name: str) -> Iterator[metadata.Distribution]:
    """A distribution and all that it requires; what lies beside torch goes before other versions."""
    path = [str(Path(torch.__file__).parent.parent), *sys.path]
    seen: dict[str, metadata.Distribution] = {}
    done: set[tuple[str, str]] = set()
    pending = [(name, "")]
    while pending:
        name, extra = pending.pop()
        if (name, extra) in done:
            continue
        done.add((name, extra))
        if name not in seen:
            seen[name] = next(iter(metadata.distributions(name=name, path=path)))
            yield seen[name]
        for required in map(Requirement, seen[name].requires or ()):
            if required.marker is None or required.marker.evaluate({"extra": extra}):
                pending += [(canonicalize_name(required.name), more) for more in ("", *required.extras)]
