"""What shares a kernel on a GPU: reductions into few rows stand apart.

A GPU needs some hundred programs. A reduction of many points into few rows (the statistics of a batch norm, a bias's
gradient) gets them only if programs share the points of a row (``codegen.triton.split``), and that takes one pass over
the points: what is computed from the totals, point by point, is another kernel.
"""

from __future__ import annotations

import math

from inductor_codegen.ir.gpu.blocks import has_few_rows
from inductor_codegen.lower.values import Lowered, Reduction, Value
from inductor_codegen.lower.views import is_one
from inductor_codegen.schedule.fusion.siblings import loaded_by


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
    source = reduction.operand.source
    for number in (*loaded_by(source, lowered), source):  # of parts of a tensor, as the result would lie
        value = lowered.values[number]
        if value.sizes == reduction.operand.sizes:
            along = [
                dim
                for dim, stride in enumerate(value.strides)
                if is_one(stride) and not is_one(value.sizes[dim])
            ]
            return bool(along) and along[0] not in reduction.dims
    return len(reduction.operand.sizes) - 1 not in reduction.dims
