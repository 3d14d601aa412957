"""The examples run as they stand: each compares what it computes with eager itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
QUICK = ("count_operators", "custom_backend", "own_tables", "static_cache")
ALL = tuple(sorted(path.stem for path in EXAMPLES.glob("*.py")))


@pytest.mark.parametrize("name", ALL if os.environ.get("ALL_EXAMPLES") else QUICK)
def test_an_example_runs(name: str) -> None:
    """All by ``nox -s examples``."""
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert run.stdout


def test_the_page_names_each() -> None:
    page = (EXAMPLES / "README.md").read_text()
    assert [name for name in ALL if f"({name}.py)" not in page] == []
