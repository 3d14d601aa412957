"""Pausing Python's search for cycles while a compiler makes objects by the thousand."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Tracing makes many objects and drops few: searching them all for cycles would take longer than tracing. What is
    left behind is still young when the pause ends, so that the next search, which is due at once, frees it."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
