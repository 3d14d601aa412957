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


@contextmanager
def loading_modules() -> Iterator[None]:
    """A pause in which modules are loaded. What they make stays, so all of it is old when the pause ends: the next
    search for young cycles, due at once, would go through every object of every module. (Freezing moves all objects
    to where no search goes and unfreezing from there to the old ones, without a look at any. What the program has
    frozen itself would be thawed, so then nothing is moved.)"""
    with collector_paused():
        yield
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
