"""The root source of guards that are about no value of the frame but about torch's state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fx_interface.source import Source


@dataclass(frozen=True, slots=True)
class StateSource(Source):
    """torch's process and thread state; its value is None, since guards on it read the state themselves."""

    def step(self, value: Any) -> Any:
        return None

    @property
    def expression(self) -> str:
        return "torch's global state"


STATE = StateSource()
"""The one instance that is needed."""
