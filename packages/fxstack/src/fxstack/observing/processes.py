"""Records of the processes that an observed program starts: ``torchrun``, multiprocessing's ``spawn``, subprocesses.

The program's environment leads each Python that it starts to ``startup/sitecustomize.py``. There ``torch.compile`` is
``fxstack.compile`` as soon as torch is imported, and when the process ends it leaves its record in a folder, which the
command reads when the program has ended. What a process forks compiles with fxstack as well, but is not recorded.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fxstack.compile import in_place_of_torch_compile
from fxstack.observing.record import recording

_VARIABLE = "FXSTACK_OBSERVED_PROCESSES"
_STARTUP = str(Path(__file__).parent / "startup")


class StartedProcesses:
    """What the processes of a program have left behind."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def records(self) -> list[dict[str, Any]]:
        """The records of those that have ended and compiled something or could not, in the order of their ends; each
        has its ``process`` number and ``command``."""
        files = sorted(self._folder.glob("*.json"), key=lambda file: (file.stat().st_mtime_ns, file.name))
        return [json.loads(file.read_text(encoding="utf-8")) for file in files]


@contextlib.contextmanager
def observing_started_processes(*, times: bool) -> Iterator[StartedProcesses]:
    """In the block, each Python that is started with this process's environment is recorded until it ends."""
    inherited = os.environ.get("PYTHONPATH")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, contextlib.ExitStack() as stack:
        for name, value in (
            (_VARIABLE, json.dumps({"folder": folder, "times": times})),
            ("PYTHONPATH", os.pathsep.join([_STARTUP, *([inherited] if inherited else [])])),
        ):
            stack.callback(_restore, name, os.environ.get(name))
            os.environ[name] = value
        yield StartedProcesses(Path(folder))


def _restore(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def observe_this_process() -> None:
    """Record what this process compiles, ``torch.compile`` included, until it ends: if the program that started it is
    observed."""
    asked = os.environ.get(_VARIABLE)
    if asked is None:
        return
    options = json.loads(asked)
    number, stack = os.getpid(), contextlib.ExitStack()
    stack.enter_context(in_place_of_torch_compile())
    record = stack.enter_context(recording(times=options["times"]))

    def leave() -> None:
        stack.close()
        data = record.data()
        if os.getpid() == number and (data["frames"] or data["uncompiled"]):
            made = {"process": number, "command": sys.orig_argv, **data}
            with contextlib.suppress(OSError):  # the command has ended before
                _write(Path(options["folder"], f"{number}.json"), json.dumps(made))

    atexit.register(leave)


def _write(path: Path, text: str) -> None:
    """At once: the folder may be read meanwhile."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
