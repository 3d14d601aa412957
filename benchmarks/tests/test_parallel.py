"""Training steps of two processes, measured beside eager."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch


@pytest.mark.nightly
@pytest.mark.skipif(
    not (torch.distributed.is_available() and torch.distributed.is_gloo_available()),
    reason="torch without gloo",
)
def test_two_processes_on_a_cpu(tmp_path: Path) -> None:
    sizes = {"layers": 1, "width": 64, "vocabulary": 50, "batch": 2, "length": 8, "rounds": 1}
    command = [sys.executable, "-m", "benchmarks.parallel", "--device", "cpu", "--wrappers", "ddp"]
    command += [word for name, size in sizes.items() for word in (f"--{name}", str(size))]
    ran = subprocess.run(
        [*command, "--systems", "eager", "fxstack"],
        env={**os.environ, "FXSTACK_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"},
        cwd=Path(__file__).resolve().parent.parent.parent,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    rows = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    assert [row["system"] for row in rows] == ["eager", "fxstack"]
    assert all(row["ms"] > 0 for row in rows)
    assert rows[1]["distance"] < 1e-3
