"""Cost: rough work of primitives, in units of one vector addition, and what recomputing a value would
cost.
"""

from __future__ import annotations

import math

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import product
from inductor_codegen.lower.values import (
    Cat,
    Depthwise,
    Fill,
    Gather,
    Iota,
    Lowered,
    Operand,
    Pad,
    Pointwise,
    Reduction,
    Value,
)
from inductor_codegen.schedule.fusion.edges import Edge, Match

_DIVISION = 4
_TRANSCENDENTAL = 20

_DIVISIONS = (
    "div", "reciprocal", "sqrt", "rsqrt", "floor", "ceil", "trunc", "round", "floor_div", "trunc_div",
)  # fmt: skip
FUNCTIONS = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "lgamma", "pow",
    "atan2", "sigmoid",
)  # fmt: skip
"""Primitives that take many instructions."""

OP_COST: dict[str, int] = {
    "clone": 0,
    **dict.fromkeys(_DIVISIONS, _DIVISION),
    **dict.fromkeys(("remainder", "fmod"), 2 * _DIVISION),
    **dict.fromkeys(FUNCTIONS, _TRANSCENDENTAL),
}
"""Cost of a pointwise primitive; 1 where not listed."""

_PLACES = frozenset({"add", "sub", "neg", "abs", "minimum", "maximum"})

CHEAP = 3
"""Computing up to this much again costs less than storing and loading the result."""
CHEAP_ON_GPU = 24
"""The same on a GPU, whose kernels wait for memory, of arithmetic alone: one function and what stands around it."""
_LARGE = 1 << 16
"""Elements from which memory counts on a GPU."""


_ARITHMETIC = (Pointwise, Fill, Iota)
_ONE_AT_EACH_POINT = (Pointwise, Fill)


@dataclass(frozen=True, slots=True)
class TreeCost:
    """Work and full-size loads to compute one element of a value from what is surely in memory.

    ``bytes`` is what these loads read; ``plain`` says that nothing but arithmetic on elements at one place is in it;
    ``limit`` is how much of both is worth less than memory for the value; ``one``: one number at every point, which
    loops compute before they begin. ``narrow``, on a GPU: the work from a value of a dtype of fewer bytes, where no
    other of that size is read on the way; None without one. ``narrower``: it converts what is made of a reduction's
    result to fewer bytes, which memory should hold, not the result.
    """

    work: int
    loads: int
    bytes: int = 0
    plain: bool = True
    limit: tuple[int, int] = (0, 0)
    one: bool = False
    narrow: int | None = None
    narrower: bool = False

    @property
    def cheap(self) -> bool:
        """Whether computing the value twice beats keeping it in memory."""
        if self.narrower:
            return False
        if self.work <= CHEAP and self.loads <= 1:
            return True
        work, most = self.limit
        return self.plain and self.work <= work and self.bytes <= most

    @property
    def wider(self) -> bool:
        """Whether memory should hold the narrower value, and every reader compute this one from it."""
        return self.narrow is not None and self.narrow <= CHEAP_ON_GPU


def tree_costs(lowered: Lowered, edges: list[list[tuple[int, Edge]]], stored: set[int]) -> list[TreeCost]:
    """For each value what computing it at its use would cost; values in ``stored`` are loaded at no work."""
    costs: list[TreeCost] = []
    loads_of = {size: TreeCost(0, 1, size) for size in {value.dtype.itemsize for value in lowered.values}}
    for value, reads in zip(lowered.values, edges, strict=True):
        work, loads, size, plain = _own_cost(value.formula), 0, 0, isinstance(value.formula, _ARITHMETIC)
        one = isinstance(value.formula, _ONE_AT_EACH_POINT)
        for source, edge in reads:
            below, read = costs[source], lowered.values[source]
            if source in stored or read.formula is None or _is_reduction(lowered, source):
                below = loads_of[read.dtype.itemsize]
            work += below.work
            plain = plain and below.plain and edge.match is not Match.OTHER
            one = one and (
                below.one if edge.match is Match.SAME else edge.match is Match.REPEATED and not edge.kept
            )
            if edge.match is not Match.REPEATED:
                loads, size = loads + below.loads, size + below.bytes
        work = 0 if one or (loads == 0 and (_is_place(value) or _is_number(value))) else work
        narrow = _work_from_narrow(value, lowered, reads, costs) if any(_limit(value)) else None
        narrower = (
            any(_limit(value))
            and _gained(value, lowered) < 0
            and _ends_reduction(reads[0][0], lowered, edges)
        )
        costs.append(TreeCost(work, loads, size, plain, _limit(value), one, narrow, narrower))
    return costs


def _gained(value: Value, lowered: Lowered) -> int:
    """By how many bytes a value is wider than what it is converted from; 0 if it is no conversion."""
    if not isinstance(value.formula, Pointwise) or value.formula.op != "convert_dtype":
        return 0
    operand = value.formula.args[0]
    return value.dtype.itemsize - operand.dtype.itemsize if isinstance(operand, Operand) else 0


def _ends_reduction(number: int, lowered: Lowered, edges: list[list[tuple[int, Edge]]]) -> bool:
    """Whether a value is computed from one reduction's result and nothing else of its size."""
    while not _is_reduction(lowered, number):
        whole = {source for source, edge in edges[number] if edge.match is not Match.REPEATED}
        same = all(edge.match in (Match.SAME, Match.REPEATED) for _, edge in edges[number])
        if len(whole) != 1 or not same or not isinstance(lowered.values[number].formula, Pointwise):
            return False
        (number,) = whole
    return True


def _work_from_narrow(
    value: Value, lowered: Lowered, reads: list[tuple[int, Edge]], costs: list[TreeCost]
) -> int | None:
    """The work from the one narrower value that a value is computed from, besides what is repeated along rows."""
    if not isinstance(value.formula, Pointwise):
        return None
    own = _own_cost(value.formula)
    if _gained(value, lowered) > 0:
        return own
    whole = {source for source, edge in reads if edge.match is not Match.REPEATED}
    below = costs[next(iter(whole))].narrow if len(whole) == 1 else None
    if below is None or not all(edge.match in (Match.SAME, Match.REPEATED) for _, edge in reads):
        return None
    if any(lowered.values[source].dtype.itemsize > value.dtype.itemsize for source in whole):
        return None
    beside = sum(
        0 if lowered.values[source].formula is None or _is_reduction(lowered, source) else costs[source].work
        for source, edge in reads
        if edge.match is Match.REPEATED
    )
    return own + below + beside


def _limit(value: Value) -> tuple[int, int]:
    """Work and bytes up to which a value is computed again: bytes that two readers load, and the store before. Of a
    small value it is launches that count, not memory."""
    if value.device.type != "cuda":
        return (0, 0)
    size = product(value.sizes)
    if isinstance(size, int) and size < _LARGE:
        return (0, 0)
    return CHEAP_ON_GPU, value.dtype.itemsize * 3 // 2


def _is_place(value: Value) -> bool:
    """Whether a value is arithmetic on positions; if it has no loads, that is worth no memory.

    Most of it is settled where loops are split (``codegen.cpp.parts``), or once a row.
    """
    return isinstance(value.formula, Pointwise) and value.dtype == torch.int64 and value.formula.op in _PLACES


def _is_number(value: Value) -> bool:
    """Whether a value has one element; if it has no loads, each program of a GPU's kernel computes it once."""
    return value.device.type == "cuda" and not value.sizes and isinstance(value.formula, Pointwise)


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
        case Depthwise(windows=windows):
            return 2 * math.prod(window.length for window in windows)
    return 0
