"""Kernels for a GPU, loaded and launched in C with a driver that only says what it is asked: no GPU is needed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import fxstack_artifact

HERE = Path(__file__).parent
CORE = Path(fxstack_artifact.__file__).parents[2] / "csrc" / "core"
OPENED = """\
guard 0
retain 0
context 5
function k0 of one
function k1 of two
attribute 8 of two is 50000
function k1j of three
guard off
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("cc") is None or not CORE.is_dir():
        pytest.skip("there is no C compiler, or no source of the core")
    folder = tmp_path_factory.mktemp("gpu")
    driver = ["-shared", "-fPIC", "-w", str(HERE / "fake_driver.c"), "-o", "libcuda.so.1"]
    sources = [str(HERE / "gpu_harness.c"), str(CORE / "gpu.c"), str(CORE / "errors.c")]
    program = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined", f"-I{CORE}", *sources]
    for arguments in (driver, [*program, "-o", "harness", "-ldl"]):
        subprocess.run(["cc", *arguments], cwd=folder, check=True)
    return folder


def said(built: Path, *arguments: str, **variables: str) -> str:
    done = subprocess.run(
        [built / "harness", *arguments],
        env={"LD_LIBRARY_PATH": str(built)} | variables,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_launches(built: Path) -> None:
    """Aligned; a pointer that is not; more rows than of any class; variants of one class; none; split; tiles."""
    text = said(built)
    assert text.startswith(OPENED)
    assert text.removeprefix(OPENED) == (
        "open 0 \nguard 0\nretain 0\ncontext 5\n"
        "launch one grid 2 1 1 block 128 1 1 shared 0 stream 77 first 1000 extra 0\n-> 0 \n"
        "-> 2 the artifact has no kernel 0 for 16 rows of 1 points\n"
        "-> 2 the artifact has no kernel 0 for 33 rows of 1 points\n"
        "launch one grid 4 1 1 block 128 1 1 shared 0 stream 77 first 1000 extra 0\n-> 0 \n"
        "launch one grid 9 1 1 block 128 1 1 shared 0 stream 77 first 1004 extra 0\n-> 0 \n"
        "launch three grid 5 1 1 block 64 1 1 shared 16 stream 77 first 1000 extra 0\n-> 0 \n"
        "-> 0 \n"
        "memory 192 on 1 0\n"
        "launch two grid 2 4 1 block 256 1 1 shared 50000 stream 77 first 1004 extra 0\nlast 256\n"
        "launch three grid 3 1 1 block 64 1 1 shared 16 stream 77 first 1004 extra 0\n"
        "memory back\n-> 0 \n"
        "launch three grid 2 2 1 block 64 1 1 shared 16 stream 77 first 1004 extra 0\n-> 0 \n"
        "guard off\n"
    )


def test_a_table_that_is_not_sorted_is_refused(built: Path) -> None:
    assert said(built, "unsorted") == "open 109 a native object's table of kernels contradicts itself\n"


def test_a_kernel_that_the_driver_refuses(built: Path) -> None:
    assert said(built, FAKE_DRIVER_FAILS="load").endswith(
        "guard off\nopen 109 a kernel cannot be loaded onto the GPU: no kernel image\n"
    )
    assert said(built, FAKE_DRIVER_FAILS="current").endswith(
        "open 109 taking up the GPU's context: no kernel image\n"
    )
    assert "-> 2 launching a kernel: no kernel image\n" in said(built, FAKE_DRIVER_FAILS="launch")


def test_without_a_driver(built: Path) -> None:
    text = said(built, LD_LIBRARY_PATH="")
    if text.startswith("guard"):
        pytest.skip("there is a driver here")
    assert text.startswith("open 109 the artifact runs on a GPU, and there is no driver: libcuda.so.1")
