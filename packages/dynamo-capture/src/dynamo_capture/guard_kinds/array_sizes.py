"""Guards on how large arrays of numpy are."""

from __future__ import annotations

from typing import ClassVar

from fx_guards import GuardRecord, guard_kind
from fx_interface.python_runtime.quick_dataclasses import dataclass


@guard_kind
@dataclass(frozen=True, slots=True)
class FewElements(GuardRecord):
    """An array of numpy with at most so many elements."""

    most: int
    kind: ClassVar[str] = "few_elements"

    def holds(self, value: object) -> bool:
        return getattr(value, "size", self.most + 1) <= self.most

    def explain(self, value: object) -> str:
        return f"expected an array of at most {self.most} elements, got {getattr(value, 'size', value)}"
