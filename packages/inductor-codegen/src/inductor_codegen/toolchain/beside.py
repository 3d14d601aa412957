"""Work beside the caller's, in a thread: what waits for the C++ compiler can be waited for later.

forward = Beside(compile_forward)    # g++ is at work
backward = plan_backward()           # Python meanwhile
forward.result()
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Pending(Protocol[T_co]):
    """Work that may not be over."""

    def wait(self) -> None:
        """Until it has ended, whatever came of it."""

    def result(self) -> T_co:
        """What it gives, or raises."""


class Done(Generic[T]):
    """Work that is over."""

    def __init__(self, made: T) -> None:
        self._made = made

    def wait(self) -> None:
        """At once."""

    def result(self) -> T:
        """What it gave."""
        return self._made


class Beside(Generic[T]):
    """One call of ``work`` in a thread of its own; at once, where no thread can be had."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._made: list[T] = []
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = threading.Thread(target=self._run, name="fxstack-compiler")
        try:
            self._thread.start()
        except RuntimeError:  # the process may have no more threads
            self._thread = None
            self._run()

    def _run(self) -> None:
        try:
            self._made.append(self._work())
        except BaseException as error:
            self._error = error

    def wait(self) -> None:
        """Until it has ended, whatever came of it."""
        if self._thread is not None:
            self._thread.join()

    def result(self) -> T:
        """What ``work`` gives, or raises."""
        self.wait()
        error, self._error = self._error, None
        if error is not None:
            raise error
        return self._made[0]


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
