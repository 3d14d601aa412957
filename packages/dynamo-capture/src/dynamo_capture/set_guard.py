"""The guard on the content of a set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from guards import GuardRecord, guard_kind


@guard_kind
@dataclass(frozen=True, slots=True)
class SetEquals(GuardRecord):
    """A set or frozenset with exactly these members."""

    kind: ClassVar[str] = "set_equals"
    expected: frozenset[Any]

    def holds(self, value: Any) -> bool:
        try:
            return bool(value == self.expected)
        except Exception:
            return False

    def explain(self, value: Any) -> str:
        return f"expected a set equal to {set(self.expected)!r}, got {value!r}"
