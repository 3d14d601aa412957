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
