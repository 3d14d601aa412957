"""A backward compiled for the gradients that most likely arrive, and the whole one, compiled when it is needed."""

from __future__ import annotations

import threading
from collections.abc import Callable

from fx_interface.backend import CompiledGraph


class PartialBackward:
    """``usual`` takes None for the tangents that the plan says are ``absent``; ``make`` compiles the graph that takes
    all of them. It may be called in a thread of autograd."""

    __slots__ = ("_lock", "_make", "_whole", "usual")

    def __init__(self, usual: CompiledGraph, make: Callable[[], CompiledGraph]) -> None:
        self.usual = usual
        self._make: Callable[[], CompiledGraph] | None = make
        self._whole: CompiledGraph | None = None
        self._lock = threading.Lock()

    @property
    def whole(self) -> CompiledGraph:
        """The graph that takes all tangents, compiled now if it is not yet; raises what its compilation does."""
        with self._lock:
            if self._whole is None:
                assert self._make is not None
                self._whole, self._make = self._make(), None
            return self._whole
