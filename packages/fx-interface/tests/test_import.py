"""Importing the package loads nothing beyond torch, and is cheap."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys, time, torch
before = set(sys.modules)
start = time.perf_counter()
import fx_interface
print(time.perf_counter() - start)
print(*sorted(name.split(".")[0] for name in set(sys.modules) - before))
"""


def test_import_is_cheap_and_loads_nothing_else() -> None:
    times = []
    for _ in range(3):
        out = subprocess.run(
            [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True
        ).stdout
        seconds, loaded = out.splitlines()
        times.append(float(seconds))
        assert set(loaded.split()) == {"fx_interface"}
    assert min(times) < 0.15
