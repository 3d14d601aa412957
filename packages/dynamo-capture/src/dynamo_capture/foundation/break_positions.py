"""Where the frames of inlined calls stand when a graph ends in the innermost of them."""

from __future__ import annotations

from typing import Any, NamedTuple

from fx_interface.python_runtime.quick_dataclasses import dataclass


class Stop(NamedTuple):
    """A place in a trace: in the ``run``-th run of an inlined frame, after so many ``steps``."""

    run: int
    steps: int


class Stopped(BaseException):
    """The signal that the trace has come to its ``Stop``; the frames are as they are there, outermost first."""

    def __init__(self, frames: list[Any]) -> None:
        self.frames = frames


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a frame stood when a break left it."""

    frame: Any
    step: Any
    stop: Stop
