"""Runs a function for each of some names, each in a forked process of its own, with a time limit.

What is imported before is shared, so that a process costs milliseconds; a crash or a hang costs one name.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class _Running:
    name: str
    process: int
    begun: float
    data: bytes = b""


def forked(
    work: Callable[[str], dict[str, Any]], names: Sequence[str], limit: float, jobs: int
) -> Iterator[tuple[str, dict[str, Any] | None, str]]:
    """Each name with what ``work`` gave for it, as JSON carries it, or with None and what ended the process."""
    waiting = list(reversed(names))
    running: dict[int, _Running] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                pipe, made = _begun(work, waiting.pop())
                running[pipe] = made
            yield from _ended(running, limit)
    finally:
        for one in running.values():
            os.kill(one.process, signal.SIGKILL)


def _begun(work: Callable[[str], dict[str, Any]], name: str) -> tuple[int, _Running]:
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        return reading, _Running(name, process, time.monotonic())
    status = 1
    try:
        os.close(reading)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        with os.fdopen(writing, "w") as out:
            json.dump(work(name), out)
        status = 0
    finally:
        os._exit(status)


def _ended(running: dict[int, _Running], limit: float) -> Iterator[tuple[str, dict[str, Any] | None, str]]:
    """Reads what has come, for a second at most; what has ended leaves ``running``."""
    ready, _, _ = select.select(list(running), [], [], 1.0)
    for pipe in list(running):
        one = running[pipe]
        if pipe in ready:
            data = os.read(pipe, 1 << 16)
            one.data += data
            if data:
                continue
        elif time.monotonic() - one.begun < limit:
            continue
        else:
            os.kill(one.process, signal.SIGKILL)
        os.close(pipe)
        del running[pipe]
        _, status = os.waitpid(one.process, 0)
        if pipe not in ready:
            yield one.name, None, f"took more than {limit:g} s"
        elif status:
            yield one.name, None, f"the process ended with {os.waitstatus_to_exitcode(status)}"
        else:
            yield one.name, json.loads(one.data), ""
