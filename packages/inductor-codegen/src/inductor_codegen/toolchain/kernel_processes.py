"""Kernels for a GPU, compiled by several processes into Triton's cache, before the program that launches them does.

    prepare(count, target)                                      processes begin and load Triton
    with compile_beside(text, path, jobs, target) as batch:     they are at work
        ...                                                     so is the C++ compiler
        batch.wait()                                            each kernel's image is in ``batch.images``

Nothing depends on them: a kernel that no process has compiled is compiled at its first launch, in this process. So a
process that cannot be started, dies or hangs is left out. Several batches may be under way, in threads of their own.
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
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from inductor_codegen.temporary import temporary_folder
from inductor_codegen.toolchain import kernel_worker
from inductor_codegen.toolchain.beside import processors

MOST_PROCESSES = 32
FEWEST_JOBS = 4
"""Fewer kernels are compiled in this process, unless others are there: one takes as long to begin."""
_JOBS_OF_ONE = 3
"""Kernels that pay for a process."""
_SILENCE = 120.0
"""Seconds without an answer after which processes are given up."""
_LOOK = 0.5
"""Seconds without an answer after which it is looked whether processes are alive."""

Job = Mapping[str, Any]
"""``function``, ``kinds``, ``constants``, ``attributes`` and ``options`` of ``kernel_worker.compile_function``, as JSON
has them."""


class Image(NamedTuple):
    """A compiled kernel: its content for the driver, its name in there, and threads and bytes of shared memory of a
    block."""

    content: bytes
    name: str
    threads: int
    shared: int


class _Process:
    """One process."""

    def __init__(self, target: Sequence[Any]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", kernel_worker.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.tell({"path": sys.path, "target": list(target)})

    @property
    def number(self) -> int:
        """What it calls itself."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it can be told of more."""
        return self._process.poll() is None

    def tell(self, what: object) -> None:
        """Write one line; OSError if it has ended."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what).encode() + b"\n")
        self._process.stdin.flush()

    def end(self) -> None:
        """End it now."""
        with contextlib.suppress(OSError):
            self._process.kill()
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        self._process.wait()


class _Pool:
    """The processes of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: list[_Process] = []
        self._owner = 0

    def begin(self, folder: str, count: int, target: Sequence[Any]) -> list[_Process]:
        """Tell processes of a folder with ``count`` jobs: who was told. OSError if none can begin."""
        with self._lock:
            told = []
            for process in self._ready(min(MOST_PROCESSES, processors(), -(-count // _JOBS_OF_ONE)), target):
                with contextlib.suppress(OSError):  # it has just ended
                    process.tell({"folder": folder})
                    told.append(process)
            return told

    def prepare(self, count: int, target: Sequence[Any]) -> None:
        """Have so many processes, which load Triton and wait."""
        with self._lock:
            self._ready(min(MOST_PROCESSES, processors(), count), target)

    @property
    def is_ready(self) -> bool:
        """Whether a process is there."""
        return self._owner == os.getpid() and any(process.is_alive for process in self._processes)

    def _ready(self, count: int, target: Sequence[Any]) -> list[_Process]:
        if self._owner != os.getpid():  # after a fork the processes are the parent's
            self._processes, self._owner = [], os.getpid()
            atexit.register(self.end)
        self._processes = [process for process in self._processes if process.is_alive]
        while len(self._processes) < count:
            self._processes.append(_Process(target))
        return self._processes[:count]

    def forget(self) -> None:
        """In a fork: another thread may have held the lock."""
        self._lock, self._processes = threading.Lock(), []

    def end(self) -> None:
        """End all processes, if they are this process's."""
        processes, self._processes = self._processes, []
        if self._owner == os.getpid():
            for process in processes:
                process.end()


_POOL = _Pool()
os.register_at_fork(after_in_child=lambda: _POOL.forget())


class Batch:
    """Kernels that are being compiled; used as a context, at whose end nobody needs what the processes read.
    ``images`` are those of the jobs by their places, behind ``wait``."""

    def __init__(self) -> None:
        self.images: dict[int, Image] = {}
        self._kept = contextlib.ExitStack()
        self._processes: list[_Process] = []
        self._places: list[int] = []
        self._folder: Any = None
        self._answers = -1
        self._open = 0

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, *_: object) -> None:
        self._kept.close()

    def begin(self, text: str, path: str, jobs: Sequence[Job], target: Sequence[Any]) -> None:
        """Have the jobs compiled, those with the longest texts first. OSError if that cannot be begun."""
        functions = kernel_worker.functions_of(text)
        lengths = [len(functions.get(job["function"], (0, ""))[1]) for job in jobs]
        self._places = sorted(range(len(jobs)), key=lambda place: -lengths[place])
        self._open = len(jobs)
        ordered = [jobs[place] for place in self._places]
        content = {"text": text, "path": path, "jobs": ordered, "target": list(target)}
        self._folder = self._kept.enter_context(temporary_folder())
        self._folder.write(kernel_worker.JOBS, json.dumps(content).encode())
        pipe = self._folder.path / kernel_worker.ANSWERS
        os.mkfifo(pipe, 0o600)
        # also for writing, so that it does not end whenever no process has it open
        self._answers = os.open(pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._kept.callback(os.close, self._answers)
        self._processes = _POOL.begin(str(self._folder.path), len(jobs), target)

    def wait(self) -> None:
        """Until each kernel is compiled, or whoever was to compile it has ended."""
        waiting, rest, heard = {process.number: process for process in self._processes}, b"", time.monotonic()
        with selectors.DefaultSelector() as selector:  # also where descriptors are too high for ``select``
            if waiting:
                selector.register(self._answers, selectors.EVENT_READ)
            while waiting and self._open:
                if selector.select(_LOOK if _LOOK < _SILENCE else _SILENCE):
                    *lines, rest = (rest + os.read(self._answers, 1 << 16)).split(b"\n")
                    heard = time.monotonic()
                    for line in lines:
                        self._hear(json.loads(line), waiting)
                    continue
                is_silent = time.monotonic() - heard >= _SILENCE
                for number, process in list(waiting.items()):
                    if is_silent:
                        process.end()
                    if not process.is_alive:
                        del waiting[number]

    def _hear(self, answer: Mapping[str, Any], waiting: dict[int, _Process]) -> None:
        if "ended" in answer:
            waiting.pop(answer["ended"], None)
            return
        self._open -= 1
        if "name" in answer:
            job = answer["job"]
            with contextlib.suppress(OSError):
                content = self._folder.read(kernel_worker.image_name(job))
                image = Image(content, answer["name"], answer["threads"], answer["shared"])
                self.images[self._places[job]] = image


def prepare(count: int, target: Sequence[Any]) -> None:
    """Have processes for about ``count`` kernels begin, so that they are ready when these are known."""
    if count >= FEWEST_JOBS and _can_be():
        with contextlib.suppress(OSError, ValueError):
            _POOL.prepare(-(-count // _JOBS_OF_ONE), target)


def _can_be() -> bool:
    interpreter = os.path.basename(sys.executable or "")
    return processors() > 1 and "python" in interpreter and os.environ.get("TRITON_INTERPRET") != "1"


def compile_beside(text: str, path: str, jobs: Sequence[Job], target: Sequence[Any]) -> Batch:
    """Begin to compile functions of the module ``text``, which will lie at ``path``, for a ``target`` (backend,
    architecture, threads of a warp). Nothing begins where it would not pay, or cannot be done."""
    batch = Batch()
    if jobs and (len(jobs) >= FEWEST_JOBS or _POOL.is_ready) and _can_be():
        with contextlib.suppress(OSError, ValueError):
            batch.begin(text, path, jobs, target)
    return batch
