"""Graph breaks that happened: the entry of the catalogue, what was met, and where in the user's program."""

from __future__ import annotations

from dynamo_capture.foundation.break_kinds import KINDS, UNLISTED, BreakKind
from fx_interface.errors import UserLocation
from fx_interface.python_runtime.quick_dataclasses import dataclass

__all__ = ["KINDS", "BreakKind", "BreakReport"]


@dataclass(frozen=True, slots=True)
class BreakReport:
    """One graph break that happened: its code, what was met and where. ``resumed``: what follows is captured anew,
    else the function runs uncaptured."""

    code: str
    what: str
    where: UserLocation | None
    resumed: bool

    @property
    def kind(self) -> BreakKind:
        """Its entry in the catalogue."""
        return KINDS.get(self.code, UNLISTED)

    def __str__(self) -> str:
        place = f"\n  at {self.where}" if self.where is not None else ""
        kind = self.kind
        return f"[{self.code}] {self.what}{place}\n  why: {kind.why}\n  to do: {kind.advice}"
