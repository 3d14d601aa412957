"""One run of the compiler: in a session of its own, so that it ends with all that it started when its time is over."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from fx_interface.python_runtime.quick_dataclasses import dataclass
from inductor_codegen.native_errors import CompilationError

_HUNG: dict[str, float] = {}
"""Commands that were ended after so many seconds; they are not tried again in this process."""


@dataclass(frozen=True, slots=True)
class CompilerRun:
    """How a run ended: ``status`` is negative for a signal, as in ``subprocess``."""

    status: int
    output: str
    messages: str


def run_compiler(command: Sequence[str], seconds: float, folder: Path | None = None) -> CompilerRun:
    """Run a command for at most ``seconds``; its temporary files go to ``folder``, its messages are in English.

    CompilationError IND113 if it cannot be started, or does not end: then at once for later runs of the same compiler.
    """
    if command[0] in _HUNG:
        raise _hung(command, _HUNG[command[0]])
    environment = {**os.environ, "LC_ALL": "C"}
    if folder is not None:
        environment["TMPDIR"] = str(folder)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise CompilationError(
            "IND113", f"the C++ compiler could not be run: {error}", action="check $CXX, or free some memory"
        ) from error
    try:
        output, messages = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        _end(process)
        _HUNG[command[0]] = seconds
        raise _hung(command, seconds) from None
    except BaseException:
        _end(process)
        raise
    return CompilerRun(process.returncode, output, messages)


def _end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=5.0)


def _hung(command: Sequence[str], seconds: float) -> CompilationError:
    return CompilationError(
        "IND113",
        f"the C++ compiler {command[0]} did not end within {seconds:.0f} s ({shlex.join(command)[:400]})",
        action="check $CXX; no other graph of this process is given to it",
    )
