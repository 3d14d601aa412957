"""The C++ library of artifacts and its example programs, built once."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import torch

import fxstack_artifact

SOURCE = Path(fxstack_artifact.__file__).parents[2] / "cpp"
LIBRARIES = Path(torch.__file__).parent / "lib"


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built programs."""
    for tool in ("cmake", "c++"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    if not SOURCE.is_dir():
        pytest.skip("the sources of the C++ library are not in this installation")
    if not (LIBRARIES / "libtorch_cpu.so").exists():
        pytest.skip("torch has no libtorch_cpu.so")
    folder = tmp_path_factory.mktemp("cpp")
    for command in (
        ["cmake", "-S", str(SOURCE), "-B", str(folder), f"-DTORCH_LIBRARIES={LIBRARIES}"],
        ["cmake", "--build", str(folder)],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "warning:" not in done.stderr
    return folder
