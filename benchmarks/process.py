"""A measurement in a process of its own, with caches of its own: what one system loads or keeps touches no other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
"""Of the repository: there ``benchmarks`` can be imported."""


def measure(request: dict[str, Any], cache: Path) -> dict[str, float]:
    """Run a request of ``benchmarks.worker`` in a fresh process; its caches, ours and stock's, lie in ``cache``."""
    environment = dict(
        os.environ,
        FXSTACK_CACHE_DIR=str(cache / "fxstack"),
        TORCHINDUCTOR_CACHE_DIR=str(cache / "stock"),
        OMP_NUM_THREADS="1",
        HF_HUB_OFFLINE="1",
        FXSTACK_ON_INTERNAL_ERROR="raise",
    )
    done = _run(["-m", "benchmarks.worker", json.dumps(request)], environment)
    if done.returncode:
        raise SystemExit(f"{request} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    result: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def in_checkout(tree: Path, program: str, bytecode: Path, **variables: str) -> dict[str, float]:
    """Run a program, which prints a line of JSON, in a fresh process with the packages of a checkout and these
    benchmarks; compiled modules are written to and read from ``bytecode``."""
    packages = [str(folder) for folder in sorted(tree.glob("packages/*/src"))]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([*packages, str(ROOT)]),
        "PYTHONPYCACHEPREFIX": str(bytecode),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        **variables,
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = _run(["-c", program], environment)
    if done.returncode:
        raise SystemExit(f"{tree}, {program}:\n{done.stderr[-4000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _run(arguments: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """A process of this interpreter, whose output is kept."""
    return subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
