"""Times of the kernels and library calls that compiled graphs run on a CPU, while somebody watches.

    with watching() as times:
        compiled(x)
    times()["aten::mm (model.py:4 in forward)"].least  # nanoseconds

A step of a graph has a label (``codegen.wrapper.labels``); equal labels are counted together. While nobody watches, a
step costs one comparison. ``torch.profiler`` shows the same labels as ranges, without anybody watching.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from inductor_codegen import _runtime


class StepTime(NamedTuple):
    """How often a step ran, and how long that took in all and at least, in nanoseconds; ``least`` since the process
    began."""

    calls: int
    total: int
    least: int


@contextlib.contextmanager
def watching() -> Iterator[Callable[[], dict[str, StepTime]]]:
    """Time the steps of all graphs of this process that run on a CPU until the block ends; yields a function that says
    what was found so far."""
    before, after = _runtime.watched(), None
    _runtime.watch(True)

    def times() -> dict[str, StepTime]:
        found = {}
        for label, (count, total, least) in (after or _runtime.watched()).items():
            count_before, total_before, _ = before.get(label, (0, 0, 0))
            if count > count_before:
                found[label] = StepTime(count - count_before, total - total_before, least)
        return found

    try:
        yield times
    finally:
        after = _runtime.watched()
        _runtime.watch(False)
