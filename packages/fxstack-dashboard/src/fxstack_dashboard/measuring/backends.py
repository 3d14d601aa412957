"""Backends by name, and what each has captured.

``eager`` compiles nothing; ``stock`` is ``torch.compile`` and ``stock:NAME`` one of its backends; ``fxstack`` is
``fxstack.compile`` and ``fxstack:NAME`` one of its backends, any plug-in's included.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

FAMILIES = ("eager", "stock", "fxstack")


def compiler(name: str) -> Callable[[Any], Any]:
    """What compiles a module under the backend of that name."""
    family, _, inner = name.partition(":")
    if family == "stock":
        from fxstack_dashboard.adapters.stock import compile_stock  # the peer, only where it is asked for

        return lambda target: compile_stock(target, inner or "inductor")
    if family == "fxstack":
        import fxstack  # what is measured may be another commit's

        return lambda target: fxstack.compile(target, backend=inner or None)
    return lambda target: target


class Counts:
    """Graphs that were captured and breaks that were met while it listened; None where it cannot be known."""

    def __init__(self) -> None:
        self.graphs: int | None = None
        self.breaks: int | None = None


@contextlib.contextmanager
def counting(name: str) -> Iterator[Counts]:
    """Counts what the backend's capture does in the block."""
    counts = Counts()
    family = name.partition(":")[0]
    if family == "fxstack":
        with _listening(counts):
            yield counts
        return
    yield counts
    if family == "stock":
        from fxstack_dashboard.adapters.stock import stock_counts

        counts.graphs, counts.breaks = stock_counts()


@contextlib.contextmanager
def _listening(counts: Counts) -> Iterator[None]:
    try:
        from fx_interface.events import listening
    except ImportError:  # a commit before there were events
        yield
        return
    counts.graphs = counts.breaks = 0

    def hear(event: Any) -> None:
        if event.kind == "graph":
            counts.graphs = (counts.graphs or 0) + 1
        elif event.kind == "break":
            counts.breaks = (counts.breaks or 0) + 1

    with listening(hear):
        yield
