"""Guards on how many items there are to come: of an iterator, of a list that is not read to its end."""

from __future__ import annotations

from typing import Any, ClassVar

from dynamo_capture.runtime.iterator_lookahead import NotReadable, has_left
from fx_guards import GuardRecord, guard_kind
from fx_interface.python_runtime.quick_dataclasses import dataclass


@guard_kind
@dataclass(frozen=True, slots=True)
class ItemsLeft(GuardRecord):
    """An iterator of a builtin class has at least ``count`` items left; with ``ends``, no more than that."""

    kind: ClassVar[str] = "items_left"
    count: int
    ends: bool

    def holds(self, value: Any) -> bool:
        try:
            return (self.count == 0 or has_left(value, self.count)) and not (
                self.ends and has_left(value, self.count + 1)
            )
        except NotReadable:
            return False

    def explain(self, value: Any) -> str:
        wanted = "exactly" if self.ends else "at least"
        return f"expected an iterator with {wanted} {self.count} items left, got {value!r}"


@guard_kind
@dataclass(frozen=True, slots=True)
class LengthAtLeast(GuardRecord):
    """A list of at least ``count`` items."""

    kind: ClassVar[str] = "length_at_least"
    count: int

    def holds(self, value: Any) -> bool:
        return len(value) >= self.count

    def explain(self, value: Any) -> str:
        return f"expected at least {self.count} items, got {len(value)}"
