"""What shares a kernel on a GPU: reductions into few rows stand apart, and sums over windows have with them what is
computed from them point by point.

A GPU needs some hundred programs. A reduction of many points into few rows (the statistics of a batch norm, a bias's
gradient) gets them only if programs share the points of a row (``codegen.triton.split``), and that takes one pass over
the points: what is computed from the totals, point by point, is another kernel.

Kernels of windows take several points of a row at once (``schedule.kernels.unrolling``) and reduce nothing besides:

    y = depthwise(x, w); z = relu(y * scale + shift)        one kernel, that writes z
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from inductor_codegen.ir.gpu.blocks import has_few_rows
from inductor_codegen.lower.values import Depthwise, Lowered, Pointwise, Reduction, Value
from inductor_codegen.lower.views import is_one
from inductor_codegen.schedule.fusion.edges import Edge, Match
from inductor_codegen.schedule.fusion.groups import Group, Position
from inductor_codegen.schedule.fusion.siblings import loaded_by

_MOST_MEMBERS = 32
"""Values of a kernel that a sum over windows joins: of each, programs hold several points in registers."""


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


def takes_windows(group: Group, known: set[Position]) -> bool:
    """Whether a sum over windows that a group reads at ``known`` positions may be computed in it."""
    return (
        known == {Position.FULL}
        and not group.reductions
        and group.domain.outer is None
        and not group.windows
        and len(group.members) <= _MOST_MEMBERS
    )


def computed_with_windows(
    lowered: Lowered, edges: Sequence[list[tuple[int, Edge]]], is_read_once: Callable[[int], bool]
) -> frozenset[int]:
    """The sums over windows, and what is computed point by point from one that nothing else reads.

    Where a reduction reads such a value, it is computed with the sum: computed in the reduction's kernel it would leave
    the sum to be written and read, too.
    """
    found: set[int] = set()
    for value in lowered.values:
        if isinstance(value.formula, Depthwise):
            found.add(value.number)
        elif found and isinstance(value.formula, Pointwise):
            for source, edge in edges[value.number]:
                is_sum = isinstance(lowered.values[source].formula, Depthwise)
                if source in found and edge.match is Match.SAME and (not is_sum or is_read_once(source)):
                    found.add(value.number)
    return frozenset(found)
