"""Cost: rough work of primitives, in units of one vector addition, and what recomputing a value would
cost.
"""

from __future__ import annotations

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from inductor_codegen.lower.values import Cat, Fill, Gather, Iota, Lowered, Pad, Pointwise, Reduction, Value
from inductor_codegen.schedule.fusion.edges import Edge, Match

_DIVISION = 4
_TRANSCENDENTAL = 20

_DIVISIONS = (
    "div", "reciprocal", "sqrt", "rsqrt", "floor", "ceil", "trunc", "round", "floor_div", "trunc_div",
)  # fmt: skip
_FUNCTIONS = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "lgamma", "pow",
    "atan2", "sigmoid",
)  # fmt: skip

OP_COST: dict[str, int] = {
    "clone": 0,
    **dict.fromkeys(_DIVISIONS, _DIVISION),
    **dict.fromkeys(("remainder", "fmod"), 2 * _DIVISION),
    **dict.fromkeys(_FUNCTIONS, _TRANSCENDENTAL),
}
"""Cost of a pointwise primitive; 1 where not listed."""

_PLACES = frozenset({"add", "sub", "neg", "abs", "minimum", "maximum"})

CHEAP = 3
"""Computing up to this much again costs less than storing and loading the result."""


@dataclass(frozen=True, slots=True)
class TreeCost:
    """Work and full-size loads to compute one element of a value from what is surely in memory."""

    work: int
    loads: int

    @property
    def cheap(self) -> bool:
        """Whether computing the value twice beats keeping it in memory."""
        return self.work <= CHEAP and self.loads <= 1


def tree_costs(lowered: Lowered, edges: list[list[tuple[int, Edge]]], stored: set[int]) -> list[TreeCost]:
    """For each value what computing it at its use would cost; values in ``stored`` are loaded at no work."""
    costs: list[TreeCost] = []
    for value, reads in zip(lowered.values, edges, strict=True):
        own = _own_cost(value.formula)
        work, loads = own, 0
        for source, edge in reads:
            below = costs[source]
            if source in stored or lowered.values[source].formula is None or _is_reduction(lowered, source):
                below = TreeCost(0, 1)
            work += below.work
            loads += 0 if edge.match is Match.REPEATED else below.loads
        costs.append(TreeCost(0 if loads == 0 and _is_place(value) else work, loads))
    return costs


def _is_place(value: Value) -> bool:
    """Whether a value is arithmetic on positions; if it has no loads, that is worth no memory.

    Most of it is settled where loops are split (``codegen.cpp.parts``), or once a row.
    """
    return isinstance(value.formula, Pointwise) and value.dtype == torch.int64 and value.formula.op in _PLACES


def _is_reduction(lowered: Lowered, number: int) -> bool:
    return isinstance(lowered.values[number].formula, Reduction)


def _own_cost(formula: object) -> int:
    match formula:
        case Pointwise(op):
            return OP_COST.get(op, 1)
        case Fill() | Iota():
            return 0
        case Pad():
            return 2
        case Cat(operands):
            return 2 * len(operands)
        case Gather():
            return 4
    return 0
