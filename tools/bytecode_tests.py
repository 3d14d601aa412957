"""Runs the tests of the layers that need no torch (bytecode, assembler, frame hook) on other CPythons."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from pathlib import Path

from workspace import BY_NAME, ROOT

TORCH_FREE = (
    "tests/bytecode",
    "tests/interpreter/opcodes/test_not_handled.py",
    "tests/polyfills/python",
    "tests/polyfills/test_polyfills.py",
    "tests/hook",
)
"""What is run, below packages/dynamo-capture: folders and files whose tests must not import torch."""

TOOLS = ("pytest>=8", "pytest-timeout>=2.3", "hypothesis>=6.100", "hatchling>=1.25")


def candidates(version: str) -> Iterator[Path]:
    """Places where an interpreter of that version may be: the path, pyenv, uv."""
    found = shutil.which(f"python{version}")
    if found is not None:
        yield Path(found)
    for pattern in (
        f".pyenv/versions/{version}.*/bin/python",
        f".local/share/uv/python/cpython-{version}*/bin/python",
    ):
        yield from sorted(Path.home().glob(pattern), reverse=True)


def interpreter(version: str) -> Path | None:
    """The first candidate that runs and is of that version with the headers that the extension needs."""
    program = "import os, sys, sysconfig as s; h = os.path.join(s.get_paths()['include'], 'Python.h');"
    program += f"sys.exit('%d.%d' % sys.version_info[:2] != {version!r} or not os.path.exists(h))"
    for path in candidates(version):
        try:
            done = subprocess.run([str(path), "-c", program], check=False, capture_output=True, timeout=60)
        except OSError:
            continue
        if done.returncode == 0:
            return path
    return None


def environment(version: str, python: Path) -> Path:
    """A virtual environment of that interpreter with the test tools and without torch; its interpreter."""
    folder = ROOT / ".nox" / f"bytecode-{version}"
    inside = folder / "bin" / "python"
    if not (folder / "ready").exists():
        subprocess.run([str(python), "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(inside), "-m", "pip", "install", "--quiet", *TOOLS], check=True)
        (folder / "ready").touch()
    return inside


def selected(package: Path) -> list[str]:
    """The torch-free tests that are there."""
    return sorted({str(path) for pattern in TORCH_FREE for path in package.glob(pattern)})


def main(argv: Sequence[str]) -> int:
    """Test the versions that the arguments begin with, side by side; the rest is for pytest."""
    versions = list(takewhile(re.compile(r"\d+\.\d+").fullmatch, argv))
    arguments = argv[len(versions) :]
    with ThreadPoolExecutor(max(1, len(versions))) as pool:
        results = list(pool.map(lambda version: run(version, arguments), versions))
    for version, (_, output) in zip(versions, results, strict=True):
        print(f"CPython {version}:\n{output}", flush=True)
    return max((status for status, _ in results), default=0)


def run(version: str, arguments: Sequence[str]) -> tuple[int, str]:
    """Build the extension and run the tests: their exit status, 0 where the interpreter is missing, and the output."""
    python = interpreter(version)
    if python is None:
        return (
            0,
            f"skipped: no CPython {version} with headers was found on the path, in ~/.pyenv or among uv's",
        )
    inside = environment(version, python)
    package = BY_NAME["dynamo-capture"].folder
    builder = package / "hatch_build.py"
    if builder.exists():
        subprocess.run([str(inside), str(builder)], check=True)
    sources = [str(BY_NAME[name].folder / "src") for name in ("dynamo-capture", "guards", "fx-interface")]
    settings = os.environ | {"PYTHONPATH": os.pathsep.join(sources)}
    program = "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is not None)"
    subprocess.run([str(inside), "-c", program], check=True)
    command = [str(inside), "-m", "pytest", "-q", "--timeout=300", *selected(package), *arguments]
    done = subprocess.run(
        command,
        check=False,
        env=settings,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
