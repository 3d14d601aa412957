"""Where modules are called, and what the trace remembers of that."""

from __future__ import annotations

from typing import Any

from dynamo_capture.frames.frame import Frame


class Place:
    """A call in a frame that stands there for the ``count``-th time; ``record`` is what the third has done, ``state``
    and ``given`` what the trace knew and what the arguments were."""

    __slots__ = ("count", "failures", "frame", "given", "record", "state")

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.count = self.failures = 0
        self.record: Any = None
        self.state: Any = None
        self.given: tuple[Any, ...] = ()
