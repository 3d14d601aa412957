from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fxstack_dashboard.storing.records import Key, Result, Run

MACHINE = {"processor": "a processor", "cores": 2, "memory_gib": 8, "system": "Linux x86_64", "gpus": []}
KEY = Key("tiny", "gated", "fxstack", "inference", "cpu")


@pytest.fixture
def make_run() -> Callable[..., Run]:
    """Runs with a number, a day apart."""

    def make(number: int, **changed: object) -> Run:
        given: dict[str, object] = {
            "id": f"run{number:04}",
            "started": f"2026-01-{number + 1:02}T00:00:00+00:00",
            "machine": "machine1",
            "commit": f"{number:040x}",
            "committed": "2026-01-01T00:00:00+00:00",
            "dirty": False,
            "label": "",
            "threads": 1,
            "rounds": 5,
            "repeats": 1,
            "versions": {"torch": "2.13.0"},
            "planned": (KEY,),
            "files": {},
        }
        return Run(**{**given, **changed})  # type: ignore[arg-type]

    return make


@pytest.fixture
def make_result() -> Callable[..., Result]:
    """Results that pass with a speed-up of 2."""

    def make(run: str, *, repeat: int = 0, key: Key = KEY, **changed: object) -> Result:
        given: dict[str, object] = {
            "status": "pass",
            "stage": "",
            "reason": "",
            "traceback": "",
            "figures": {
                "eager_s": 0.02,
                "step_s": 0.01,
                "cold_s": 1.0,
                "warm_s": 0.1,
                "eager_bytes": 1000.0,
                "step_bytes": 900.0,
                "graphs": 1.0,
                "breaks": 0.0,
                "error": 1e-7,
                "error_eager": 1e-7,
                "error_allowed": 1e-6,
            },
            "samples": {"eager": [0.02], "backend": [0.01]},
            "reference": "float64",
        }
        return Result(run=run, key=key, repeat=repeat, **{**given, **changed})  # type: ignore[arg-type]

    return make


@pytest.fixture
def models_file(tmp_path: Path) -> Callable[..., str]:
    """Writes a file of a user's own models. The second module that a process makes is the compiled one: it does what
    ``compiled`` says, and every other one what ``others`` says."""

    def write(compiled: str, others: str = "pass", name: str = "mine.py") -> str:
        text = f"""
import os, signal, time
import torch
from torch import nn

MADE = []

class Compiled(nn.Linear):
    def forward(self, x):
        {compiled}
        return super().forward(x)

class Other(nn.Linear):
    def forward(self, x):
        {others}
        return super().forward(x)

def make():
    MADE.append(None)
    return (Compiled if len(MADE) == 2 else Other)(4, 4)

WORKLOADS = [("linear", make, lambda: (torch.randn(3, 4),))]
"""
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write
