"""Sums over windows of images, and what shares a kernel with them: what is computed from them point by point.

    y = depthwise(x, w); z = relu(y * scale + shift)        one kernel, that writes z

Their kernels take several points of a row at once (``schedule.kernels.unrolling``) and reduce nothing besides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from inductor_codegen.lower.values import Depthwise, Lowered, Pointwise
from inductor_codegen.schedule.fusion.edges import Edge, Match
from inductor_codegen.schedule.fusion.groups import Group, Position

_MOST_MEMBERS = 32
"""Values of a kernel that a sum over windows joins: of each, programs hold several points in registers."""


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
