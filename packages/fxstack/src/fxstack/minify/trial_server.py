"""A process that has loaded the stack and forks for each trial, so that a trial costs no import and may crash.

Run as ``python -m fxstack.minify.trial_server``. Reads a JSON object a line from standard input (``text``, ``script``,
``seconds`` and the fields of ``Settings``) and answers each by a line: an ``Outcome``. The process itself never runs an
operator of torch, since threads that such a run may have started do not live in a forked process.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fxstack.minify.comparing import Settings, outcome_of_program, outcome_of_script
from fxstack.minify.outcomes import Outcome


def serve() -> None:
    """Answer until standard input ends."""
    _load()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what programs print is no answer
    with tempfile.TemporaryDirectory(prefix="fxstack-minify-") as folder:
        for line in sys.stdin:
            request = json.loads(line)
            answers.write(json.dumps(_trial(request, Path(folder)).as_json()) + "\n")
            answers.flush()


def _load() -> None:
    """Import what a first compilation would."""
    import aot_autograd.pipeline  # noqa: F401
    import dynamo_capture.driver.compile_frame  # noqa: F401
    import inductor_codegen.pipeline  # noqa: F401


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
        return Outcome(**json.loads(answer))
    if not in_time:
        return Outcome("hang", detail=f"no end within {request['seconds']:.0f} s")
    if os.WIFSIGNALED(status):
        return Outcome("crash", signal.Signals(os.WTERMSIG(status)).name)
    return Outcome("crash", f"exit status {os.waitstatus_to_exitcode(status)}")


def _run_and_leave(request: Mapping[str, Any], folder: Path, writing: int) -> None:
    """Be the child: run the trial, write its outcome, and end without clean-up of what the parent owns."""
    try:
        os.setpgid(0, 0)
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        file = folder / "minified.py"
        file.write_text(request["text"])
        settings = Settings(**request["settings"])
        if request["script"]:
            outcome = outcome_of_script(file, settings)
        else:
            outcome = outcome_of_program(request["text"], file, settings)
        os.write(writing, json.dumps(outcome.as_json()).encode())
        os._exit(0)
    except BaseException:
        detail = traceback.format_exc(limit=-3)
        os.write(writing, json.dumps(Outcome("invalid", "trial", detail).as_json()).encode())
        os._exit(1)


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
