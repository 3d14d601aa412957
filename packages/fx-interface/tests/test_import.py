"""Importing the package loads nothing beyond torch, and is cheap."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys, time, torch
before = set(sys.modules)
start = time.process_time()  # what others do on the machine does not count
import fx_interface
print(time.process_time() - start)
print(*sorted(name.split(".")[0] for name in set(sys.modules) - before))
"""


def test_import_is_cheap_and_loads_nothing_else() -> None:
    for _ in range(3):
        out = subprocess.run(
            [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True
        ).stdout
        seconds, loaded = out.splitlines()
        assert set(loaded.split()) == {"fx_interface"}
        if float(seconds) < 0.15:
            return
    pytest.fail(f"three imports took too long, the last one {seconds} s")
