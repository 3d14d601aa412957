"""What shares a kernel on a GPU: reductions into few rows stand apart, and beside each other.

A GPU needs some hundred programs. A reduction of many points into few rows (the statistics of a batch norm, a bias's
gradient) gets them only if programs share the points of a row (``codegen.triton.split``), and that takes one pass over
the points: what is computed from the totals, point by point, is another kernel. Reductions over the same points are
computed in one pass, so that what they read is read once.
"""

from __future__ import annotations

import math

from fx_interface.symbols import product
from inductor_codegen.ir.gpu.blocks import has_few_rows
from inductor_codegen.lower.values import Lowered, Pointwise, Reduction, Value, operands_of
from inductor_codegen.lower.views import is_one

_DEPTH = 12
"""How many pointwise steps are followed to what a reduction loads."""


def is_split(value: Value, lowered: Lowered) -> bool:
    """Whether a reduction is computed by programs that share its rows, in one pass."""
    formula = value.formula
    if value.device.type != "cuda" or not isinstance(formula, Reduction):
        return False
    sizes = [size for size in formula.operand.sizes if isinstance(size, int)]
    if len(sizes) < len(formula.operand.sizes):
        return False
    rows = math.prod(size for dim, size in enumerate(sizes) if dim not in formula.dims)
    points = math.prod(size for dim, size in enumerate(sizes) if dim in formula.dims)
    return has_few_rows(rows, points, along_rows=_runs_along_rows(formula, lowered))


def _runs_along_rows(reduction: Reduction, lowered: Lowered) -> bool:
    """Whether the dimension along memory, of what is reduced, is one that is kept."""
    for number in _loaded(reduction.operand.source, lowered):
        value = lowered.values[number]
        if value.sizes == reduction.operand.sizes:
            along = [
                dim
                for dim, stride in enumerate(value.strides)
                if is_one(stride) and not is_one(value.sizes[dim])
            ]
            return bool(along) and along[0] not in reduction.dims
    return len(reduction.operand.sizes) - 1 not in reduction.dims


class Siblings:
    """The groups that hold reductions on a GPU, by what these load."""

    def __init__(self, lowered: Lowered) -> None:
        self._lowered = lowered
        self._units: dict[int, list[int]] = {}

    def add(self, reduction: Value, unit: int) -> None:
        """The group ``unit`` holds the reduction."""
        for number in self._loads(reduction):
            units = self._units.setdefault(number, [])
            if unit not in units:
                units.append(unit)

    def of(self, reduction: Value) -> list[int]:
        """The groups with a reduction that loads one of the tensors that this one loads, the last first."""
        found = {unit for number in self._loads(reduction) for unit in self._units.get(number, ())}
        return sorted(found, reverse=True)

    def _loads(self, reduction: Value) -> list[int]:
        formula = reduction.formula
        if reduction.device.type != "cuda" or not isinstance(formula, Reduction):
            return []
        whole = formula.operand.sizes
        loaded = _loaded(formula.operand.source, self._lowered)
        return [number for number in loaded if product(self._lowered.values[number].sizes) == product(whole)]


def _loaded(number: int, lowered: Lowered) -> list[int]:
    """The tensors in memory that a value is computed from point by point, nearest first."""
    found: dict[int, None] = {}
    pending, seen = [(number, _DEPTH)], {number}
    while pending:
        current, depth = pending.pop(0)
        value = lowered.values[current]
        if not isinstance(value.formula, Pointwise) or depth == 0:
            found[current] = None
            continue
        for operand in operands_of(value.formula):
            if operand.source not in seen:
                seen.add(operand.source)
                pending.append((operand.source, depth - 1))
    return list(found)
