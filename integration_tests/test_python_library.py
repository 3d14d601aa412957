"""CPython's own tests of `raise` and `with`, captured: `nox -s sweep-python` runs more of them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SWEEP = Path(__file__).parent / "sweeps" / "python_library.py"


@pytest.mark.skipif(
    importlib.util.find_spec("test.test_raise") is None, reason="Python came without its tests"
)
def test_raise_and_with() -> None:
    done = subprocess.run([sys.executable, SWEEP, "test_raise", "test_with"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 differ" in done.stdout


@pytest.mark.nightly
def test_files_and_what_they_print(tmp_path: Path) -> None:
    """A test that passes and prints otherwise differs; what the program before gives is there in each process."""
    (tmp_path / "stand_ins.py").write_text(
        "import sys, types\nsys.modules['absent'] = types.ModuleType('absent')\n"
    )
    file = tmp_path / "test_printing.py"
    file.write_text(
        "import unittest\nimport absent\nimport fxstack\nimport torch\n\n"
        "class Printing(unittest.TestCase):\n"
        "    def test_a_number(self):\n        print((torch.ones(2) + 1).sum().item(), object())\n\n"
        "    def test_who_runs_it(self):\n        x = torch.ones(2) + 1\n        print(fxstack.is_compiling(), x)\n"
    )
    command = [sys.executable, SWEEP, file, "--before", tmp_path / "stand_ins.py"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 pass as written, 1 of them not when captured" in done.stdout
    assert "test_who_runs_it prints otherwise" in done.stdout
