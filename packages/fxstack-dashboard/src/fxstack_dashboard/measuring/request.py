"""What a worker is asked to do, as it is passed between processes."""

from __future__ import annotations

import json
from typing import NamedTuple


class Request(NamedTuple):
    """A row and how it is measured. ``suite``: a suite's name, or the path of a file; ``threads``: of torch's CPU
    kernels; ``rounds``: steps of eager and of the backend that are timed, in turns."""

    suite: str
    model: str
    backend: str
    phase: str
    device: str = "cpu"
    threads: int = 1
    rounds: int = 15

    def text(self) -> str:
        """As JSON."""
        return json.dumps(self._asdict())

    @classmethod
    def of(cls, text: str) -> Request:
        """The request that ``text`` was made of."""
        return cls(**json.loads(text))
