"""What a program is told that asks whether it is compiled: yes, as by torch's own compiler.

A program may then go a way that was never tried, and raise what it does not raise in eager: an argument is left out
"because it is compiled", and needed further on. So the frame is traced again, and the place that asked last before the
exception is told no, which is what eager tells it.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType
from typing import Any

MOST_PLACES = 4
"""So many places are told no; then the exception is taken for the program's."""

Place = tuple[tuple[CodeType, int], ...]
"""Where in the code each frame stands, outermost first."""


class Asking:
    """The answers of one trace. ``told_no``: the places that are told what eager tells them."""

    def __init__(self, told_no: frozenset[Place]) -> None:
        self._told_no = told_no
        self._last: Place | None = None
        self._before: dict[int, tuple[Any, Place]] = {}

    def answer(self, frames: Sequence[Any]) -> bool:
        """Whether the program is compiled, as it is told here."""
        place = tuple((frame.code, frame.next) for frame in frames)
        if place in self._told_no:
            return False
        self._last = place
        return True

    def raised(self, exception: Any) -> None:
        """The program raises an exception: first here, or on its way; or a graph ends at an operation that raises."""
        if self._last is not None:
            self._before.setdefault(id(exception), (exception, self._last))

    def before(self, exception: Any | None) -> Place | None:
        """The place that was told yes last before an exception, if it may be told no."""
        if exception is None or len(self._told_no) >= MOST_PLACES:
            return None
        found = self._before.get(id(exception))
        return found[1] if found is not None else None
