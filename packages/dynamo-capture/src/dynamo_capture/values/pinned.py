"""Objects that cannot be read again from the frame, but must be the same at run time: they are kept by the code itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fx_interface.source import Source


@dataclass(frozen=True, slots=True, eq=False)
class PinnedSource(Source):
    """A mutable container that existed before, held as a constant. It never stands in a guard."""

    obj: Any

    def step(self, value: Any) -> Any:
        return self.obj

    @property
    def expression(self) -> str:
        return f"<{type(self.obj).__name__} at {id(self.obj):#x}>"
