"""A guard on which side of a number a float lies."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from guards import GuardRecord, guard_kind

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}


@guard_kind
@dataclass(frozen=True, slots=True)
class FloatCompares(GuardRecord):
    """A float for which ``value symbol number`` is ``answer``."""

    kind: ClassVar[str] = "float_compares"
    symbol: str
    number: int | float
    answer: bool

    def holds(self, value: Any) -> bool:
        return type(value) is float and COMPARISONS[self.symbol](value, self.number) is self.answer

    def explain(self, value: Any) -> str:
        return f"expected x {self.symbol} {self.number!r} to be {self.answer}, got {value!r}"
