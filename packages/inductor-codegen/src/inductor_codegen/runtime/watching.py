"""Times of the kernels and library calls that compiled graphs run, while somebody watches.

    with watching() as times:
        compiled(x)
    times()["aten::mm (model.py:4 in forward)"].least  # nanoseconds
    times("cuda")  # those of graphs on a GPU

A step of a graph has a label (``codegen.wrapper.labels``); equal labels are counted together, those of graphs on a GPU
apart. Times on a GPU are its own, between two events on the stream, whose work is held back for 20 ms at most until
the call has queued it all; calls that are recorded into a CUDA graph, and its replays, are not timed. While nobody
watches, a step costs one comparison. ``torch.profiler`` shows the same labels as ranges, without anybody watching.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Literal, NamedTuple, Protocol

from inductor_codegen import _runtime

Device = Literal["cpu", "cuda"]
DEVICES: tuple[Device, ...] = ("cpu", "cuda")


class StepTime(NamedTuple):
    """How often a step ran, and how long that took in all and at least, in nanoseconds; ``least`` since the process
    began."""

    calls: int
    total: int
    least: int


class Times(Protocol):
    """What was found so far, by label."""

    def __call__(self, device: Device = "cpu") -> dict[str, StepTime]: ...


@contextlib.contextmanager
def watching() -> Iterator[Times]:
    """Time the steps of all graphs of this process until the block ends; yields a function that says what was found so
    far, which waits for what a GPU has still to do."""
    before = {device: _counts(device) for device in DEVICES}
    after: dict[Device, dict[str, tuple[int, int, int]]] = {}
    _runtime.watch(True)

    def times(device: Device = "cpu") -> dict[str, StepTime]:
        found = {}
        for label, (count, total, least) in (after[device] if after else _counts(device)).items():
            count_before, total_before, _ = before[device].get(label, (0, 0, 0))
            if count > count_before:
                found[label] = StepTime(count - count_before, total - total_before, least)
        return found

    try:
        yield times
    finally:
        after.update({device: _counts(device) for device in DEVICES})
        _runtime.watch(False)


def _counts(device: Device) -> dict[str, tuple[int, int, int]]:
    return _runtime.watched(device == "cuda")
