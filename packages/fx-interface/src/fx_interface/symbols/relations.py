"""Relations between sizes: what a compiled program relies on, and what guards on shapes check."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols.evaluation import evaluate
from fx_interface.symbols.expr import Expr, IntLike, Symbol
from fx_interface.symbols.extremes import maximum

RelationOp = Literal["==", "!=", "<", "<="]
_NEGATED: dict[RelationOp, tuple[RelationOp, bool]] = {
    "==": ("!=", False),
    "!=": ("==", False),
    "<": ("<=", True),
    "<=": ("<", True),
}


@dataclass(frozen=True, slots=True)
class Relation:
    """A fact about sizes: ``lhs op rhs``. What a guard on shapes checks; both sides may be symbolic."""

    op: RelationOp
    lhs: IntLike
    rhs: IntLike

    def holds(self, values: Mapping[Symbol, int]) -> bool:
        """Whether the fact is true of these values."""
        return compare(self.op, evaluate(self.lhs, values) - evaluate(self.rhs, values))

    def negated(self) -> Relation:
        """The opposite fact: not (a < b) is b <= a."""
        op, swap = _NEGATED[self.op]
        return Relation(op, self.rhs, self.lhs) if swap else Relation(op, self.lhs, self.rhs)

    @property
    def symbols(self) -> frozenset[Symbol]:
        """Every symbol on either side."""
        return frozenset().union(*(side.symbols for side in (self.lhs, self.rhs) if isinstance(side, Expr)))

    def __str__(self) -> str:
        return f"{self.lhs} {self.op} {self.rhs}"


def indicator(relation: Relation) -> IntLike:
    """An integer that is not 0 exactly where the relation holds."""
    difference = relation.lhs - relation.rhs
    match relation.op:
        case "<=":
            return maximum(1 - difference, 0)
        case "<":
            return maximum(0 - difference, 0)
        case "==":
            return maximum(1 - maximum(difference, 0 - difference), 0)
    return maximum(difference, 0 - difference)


def compare(op: RelationOp, difference: int) -> bool:
    """Whether ``lhs op rhs``, by their difference."""
    match op:
        case "==":
            return difference == 0
        case "!=":
            return difference != 0
        case "<":
            return difference < 0
    return difference <= 0
