"""Kernels for a GPU, compiled by several processes into Triton's cache, before the program that launches them does.

    with compile_beside(text, path, jobs, target) as batch:     processes are at work
        ...                                                     so is the C++ compiler
        batch.wait()                                            launches find their kernels in Triton's cache

Nothing depends on them: a kernel that no process has compiled is compiled at its first launch, in this process. So a
process that cannot be started, dies or hangs is left out.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import selectors
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from inductor_codegen.temporary import temporary_folder
from inductor_codegen.toolchain import kernel_worker
from inductor_codegen.toolchain.beside import processors

MOST_PROCESSES = 16
FEWEST_JOBS = 4
"""Fewer kernels are compiled in this process: another takes as long to begin."""
_SILENCE = 120.0
"""Seconds without an answer after which processes are given up."""
_FILE = "jobs.json"

Job = Mapping[str, Any]
"""``function``, ``kinds``, ``constants``, ``attributes`` and ``options`` of ``kernel_worker.compile_function``, as JSON
has them."""


class _Process:
    """One process, and how many answers it owes to the batch that it works on."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", kernel_worker.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._rest = b""
        self.owes = 0
        self.tell(sys.path)

    @property
    def is_alive(self) -> bool:
        """Whether it can be told of more."""
        return self._process.poll() is None

    def tell(self, what: object) -> None:
        """Write one line; OSError if it has ended."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what).encode() + b"\n")
        self._process.stdin.flush()

    def fileno(self) -> int:
        """For ``selectors``."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def hear(self, batch: int) -> bool:
        """Take what it has answered to a batch; False if it has ended."""
        read = os.read(self.fileno(), 1 << 16)
        *lines, self._rest = (self._rest + read).split(b"\n")
        self.owes -= sum(line.startswith(b"%d " % batch) for line in lines)
        return bool(read)

    def end(self) -> None:
        """End it now."""
        self.owes = 0
        with contextlib.suppress(OSError):
            self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                assert pipe is not None
                pipe.close()
        self._process.wait()


class _Pool:
    """The processes of this process. Who holds ``lock`` may tell them of a batch."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._processes: list[_Process] = []
        self._owner = 0
        self._batches = 0

    def begin(self, file: str, count: int) -> tuple[int, list[_Process]]:
        """Hand out the ``count`` jobs in a file: the batch's number, and who works on it. OSError if nobody can be
        told."""
        self._batches += 1
        processes = self._ready(min(MOST_PROCESSES, processors(), count))
        for place, process in enumerate(processes):
            own = list(range(place, count, len(processes)))
            process.owes = 0
            process.tell({"batch": self._batches, "file": file, "jobs": own})
            process.owes = len(own)
        return self._batches, processes

    def _ready(self, count: int) -> list[_Process]:
        if self._owner != os.getpid():  # after a fork the processes are the parent's
            self._processes, self._owner = [], os.getpid()
            atexit.register(self.end)
        self._processes = [process for process in self._processes if process.is_alive]
        while len(self._processes) < count:
            self._processes.append(_Process())
        return self._processes[:count]

    def end(self) -> None:
        """End all processes, if they are this process's."""
        processes, self._processes = self._processes, []
        if self._owner == os.getpid():
            for process in processes:
                process.end()


_POOL = _Pool()


class Batch:
    """Kernels that are being compiled; used as a context, at whose end nobody needs what the processes read."""

    def __init__(self) -> None:
        self._kept = contextlib.ExitStack()
        self._number = 0
        self._processes: list[_Process] = []

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, *_: object) -> None:
        self._kept.close()

    def begin(self, content: Mapping[str, Any]) -> None:
        """Have the jobs of ``content`` compiled, if no other batch is under way. OSError if that cannot be begun."""
        if not _POOL.lock.acquire(blocking=False):
            return
        self._kept.callback(_POOL.lock.release)
        folder = self._kept.enter_context(temporary_folder())
        folder.write(_FILE, json.dumps(content).encode())
        self._number, self._processes = _POOL.begin(str(folder.path / _FILE), len(content["jobs"]))

    def wait(self) -> None:
        """Until each kernel is compiled, or whoever was to compile it has ended."""
        waiting = [process for process in self._processes if process.owes > 0]
        with selectors.DefaultSelector() as selector:  # also where descriptors are too high for ``select``
            for process in waiting:
                selector.register(process, selectors.EVENT_READ, process)
            while waiting:
                ready: list[_Process] = [key.data for key, _ in selector.select(_SILENCE)]
                for process in ready or list(waiting):
                    is_heard = bool(ready) and process.hear(self._number)
                    if is_heard and process.owes > 0:
                        continue
                    selector.unregister(process)
                    waiting.remove(process)
                    if not is_heard:
                        process.end()


def compile_beside(text: str, path: str, jobs: Sequence[Job], target: Sequence[Any]) -> Batch:
    """Begin to compile functions of the module ``text``, which will lie at ``path``, for a ``target`` (backend,
    architecture, threads of a warp). Nothing begins where it would not pay, or cannot be done."""
    batch = Batch()
    interpreter = os.path.basename(sys.executable or "")
    if len(jobs) < FEWEST_JOBS or processors() == 1 or "python" not in interpreter:
        return batch
    if os.environ.get("TRITON_INTERPRET") != "1":
        with contextlib.suppress(OSError, ValueError):
            batch.begin({"text": text, "path": path, "jobs": list(jobs), "target": list(target)})
    return batch
