"""A process that has loaded the stack and forks for each trial, so that a trial costs no import and may crash.

Run as ``python -m fxstack.minify.trial_server``. Reads a JSON object a line from standard input (``text``, ``script``,
``seconds`` and the fields of ``Settings``) and answers each by a line: an ``Outcome``. The process itself never runs an
operator of torch, since threads that such a run may have started do not live in a forked process.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

import fx_interface
import fxstack
from fxstack.minify.comparing import Settings, outcome_of_program, outcome_of_script
from fxstack.minify.outcomes import Outcome

_INSTALLED = tuple(
    str(Path(module.__file__ or "").parent.parent) for module in (torch, fxstack, fx_interface)
)
"""Where modules lie that are loaded once for all trials; the program's own are loaded anew each time."""


def serve() -> None:
    """Answer until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what programs print is no answer
    with tempfile.TemporaryDirectory(prefix="fxstack-minify-") as folder:
        for line in sys.stdin:
            request = json.loads(line)
            answers.write(json.dumps(_trial(request, Path(folder)).as_json()) + "\n")
            answers.flush()


def _load(modules: Sequence[str]) -> None:
    """Import what a trial had to import, so that the next one need not."""
    for name in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def _trial(request: Mapping[str, Any], folder: Path) -> Outcome:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _run_and_leave(request, folder, writing)
    os.close(writing)
    try:
        answer, in_time = _read(reading, request["seconds"])
        if not in_time:
            os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    finally:
        os.close(reading)
    if answer:
        told = json.loads(answer)
        _load(told["modules"])
        return Outcome(**told["outcome"])
    if not in_time:
        return Outcome("hang", detail=f"no end within {request['seconds']:.0f} s")
    if os.WIFSIGNALED(status):
        return Outcome("crash", signal.Signals(os.WTERMSIG(status)).name)
    return Outcome("crash", f"exit status {os.waitstatus_to_exitcode(status)}")


def _run_and_leave(request: Mapping[str, Any], folder: Path, writing: int) -> None:
    """Be the child: run the trial, write its outcome, and end without clean-up of what the parent owns."""
    known = set(sys.modules)
    try:
        os.setpgid(0, 0)
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        file = folder / "minified.py"
        file.write_text(request["text"], encoding="utf-8")
        settings = Settings(**request["settings"])
        if request["script"]:
            outcome = outcome_of_script(file, settings)
        else:
            outcome = outcome_of_program(request["text"], file, settings)
        loaded = [name for name, module in sys.modules.items() if name not in known and _is_installed(module)]
    except BaseException:
        outcome, loaded = Outcome("invalid", "trial", traceback.format_exc(limit=-3)), []
    os.write(writing, json.dumps({"outcome": outcome.as_json(), "modules": loaded}).encode())
    os._exit(0)


def _is_installed(module: Any) -> bool:
    """Whether a module belongs to no program under trial."""
    file = getattr(module, "__file__", None)
    return file is None or file.startswith((*_INSTALLED, sys.base_prefix))


def _read(pipe: int, seconds: float) -> tuple[str, bool]:
    """All that is written to the pipe until its other end closes, and whether that was in time."""
    end = time.monotonic() + seconds
    parts: list[bytes] = []
    while True:
        left = end - time.monotonic()
        ready, _, _ = select.select([pipe], [], [], max(left, 0))
        if not ready:
            return "", False
        part = os.read(pipe, 65536)
        if not part:
            return b"".join(parts).decode(), True
        parts.append(part)


if __name__ == "__main__":
    serve()
