"""Measures a row in processes of its own, each with a time limit: a crash or a hang is the outcome of one row."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fxstack_dashboard.measuring.request import Request

TASKS = ("first", "second")
_KEPT = 20_000
"""Characters of a traceback, its last ones."""
_UNUSABLE = ("build", "eager")
"""Stages at which no backend has had a say: a model that fails there says nothing of one."""


class Outcome(NamedTuple):
    """What became of a row.

    ``status``: ``pass``, ``fail``, or ``unusable`` if the model fails in eager. ``stage``: where it failed:
    ``compile``, ``accuracy``, ``steps``, ``warm``, ``memory``. ``figures``: seconds, bytes, counts and distances by
    name, those that were measured; ``samples``: seconds of each timed step.
    """

    status: str
    stage: str
    reason: str
    traceback: str
    figures: dict[str, float | int | None]
    samples: dict[str, list[float]]
    reference: str


def measure_row(
    request: Request, limit: float, environment: Mapping[str, str] | None = None, python: str = sys.executable
) -> Outcome:
    """Measure a row; each of its processes may take ``limit`` seconds. ``environment``: variables besides this
    process's."""
    figures: dict[str, float | int | None] = {}
    samples: dict[str, list[float]] = {}
    reference = ""
    with tempfile.TemporaryDirectory(prefix="fxstack-dashboard-") as folder:
        for task in TASKS:
            lines, ending = _run(task, request, limit, Path(folder), environment or {}, python)
            for line in lines:
                figures |= line.get("figures", {})
                samples |= line.get("samples", {})
                reference = line.get("reference", reference)
            if ending is not None:
                stage = [line["stage"] for line in lines if "stage" in line][-1:] or ["build"]
                status = "unusable" if stage[0] in _UNUSABLE else "fail"
                return Outcome(status, stage[0], *ending, figures, samples, reference)
    return Outcome("pass", "", "", "", figures, samples, reference)


def _run(
    task: str, request: Request, limit: float, folder: Path, environment: Mapping[str, str], python: str
) -> tuple[list[dict[str, Any]], tuple[str, str] | None]:
    """What a worker has told; and reason and traceback if the row fails."""
    told, errors = folder / f"{task}.jsonl", folder / f"{task}.stderr"
    told.touch()
    command = [python, "-m", "fxstack_dashboard.measuring.worker", task, request.text(), str(told)]
    with errors.open("wb") as stream:
        process = subprocess.Popen(
            command,
            env={**os.environ, **_variables(folder, request.threads), **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stream,
            start_new_session=True,  # so that what it has started ends with it
        )
        try:
            status: int | None = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    lines = [json.loads(line) for line in told.read_text(encoding="utf-8").splitlines() if line.endswith("}")]
    return lines, _ending(lines, status, limit, errors)


def _ending(
    lines: list[dict[str, Any]], status: int | None, limit: float, errors: Path
) -> tuple[str, str] | None:
    end = next((line for line in reversed(lines) if "end" in line), None)
    if end is not None and end["end"] == "fail":
        return str(end["reason"]), str(end["traceback"])[-_KEPT:]
    if end is not None and status == 0:
        return None
    said = errors.read_bytes()[-_KEPT:].decode(errors="replace")
    if status is None:
        return f"took more than {limit:g} s", said
    if status < 0:
        return f"the process was ended by {signal.Signals(-status).name}", said
    return f"the process ended with status {status}", said


def _variables(folder: Path, threads: int) -> dict[str, str]:
    """Caches of the row's own for every backend, as many threads as asked for, and no fallback that goes unseen."""
    return {
        "FXSTACK_CACHE_DIR": str(folder / "fxstack"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "stock"),
        "TRITON_CACHE_DIR": str(folder / "triton"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "FXSTACK_ON_INTERNAL_ERROR": "raise",
        "FXSTACK_CRASH_REPORT": "off",
        "OMP_NUM_THREADS": str(threads),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
