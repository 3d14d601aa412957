"""Pointwise groups that are merged: kernels that run one after the other and read the same memory.

    grad_x = grad * y * f(x)                 ->    one loop, which reads grad once
    grad_y = grad * x

Only neighbours are merged. On a CPU no library call stands between them: nothing is kept in memory for longer. A GPU
waits for memory more than it lacks it: there a group is computed before a call that stands between, if it can be.
"""

from __future__ import annotations

from collections.abc import Sequence

from inductor_codegen.lower.values import Fill, Iota, Lowered, Pointwise
from inductor_codegen.lower.views import is_one
from inductor_codegen.schedule.fusion.edges import Edge, Match
from inductor_codegen.schedule.fusion.groups import Group, Position
from inductor_codegen.schedule.fusion.merging import Merger
from inductor_codegen.schedule.fusion.order import Dependencies

MOST_BUFFERS = 12
"""Buffers of a merged kernel: a processor follows few streams of memory at once."""
MOST_MEMBERS = 48
"""Values of a merged kernel: beyond, registers run out."""
NEAR = 16
"""Groups before one among which its neighbours are looked for."""


class Neighbours:
    """Merges groups of a grouping once all values are placed."""

    def __init__(
        self,
        lowered: Lowered,
        edges: Sequence[Sequence[tuple[int, Edge]]],
        groups: dict[int, Group],
        merger: Merger,
        dependencies: Dependencies,
    ) -> None:
        self.lowered = lowered
        self.edges = edges
        self.groups = groups
        self.merger = merger
        self.dependencies = dependencies

    def merge(self) -> None:
        """Merge what can be, in the order in which the groups would run."""
        since_call: list[int] = []
        for unit in self.dependencies.sorted():
            group = self.groups.get(unit)
            if group is None:
                since_call = [before for before in since_call if self.groups[before].device.type == "cuda"]
                continue
            if self._is_pointwise(group):
                since_call = self._with_neighbours(group, since_call)
            since_call.append(unit)

    def _with_neighbours(self, group: Group, before: list[int]) -> list[int]:
        """The units of ``before`` that are left when ``group`` has taken over those that it can."""
        after: list[int] = []
        for unit in reversed(before[-NEAR:]):
            other = self.groups[unit]
            if self._is_pointwise(other) and self._fit(other, group) and self._is_free(unit, group, after):
                self.merger.merge(group, other)
            else:
                after.append(unit)
        return before[:-NEAR] + after[::-1]

    def _is_free(self, unit: int, group: Group, between: Sequence[int]) -> bool:
        """Whether nothing has to be computed after the group ``unit`` and before ``group``. On a CPU all that stands
        between them are the groups ``between``."""
        if group.device.type == "cpu":
            return not any(self.dependencies.needs(later, unit) for later in between)
        return not self.dependencies.reaches_around(group.unit, unit)

    def _is_pointwise(self, group: Group) -> bool:
        return (
            not group.reductions
            and group.domain.outer is None
            and {Position.FULL} == set().union(*group.members.values())
            and all(
                isinstance(self.lowered.values[n].formula, Pointwise | Fill | Iota) for n in group.members
            )
        )

    def _fit(self, first: Group, second: Group) -> bool:
        """Whether two groups run over the same points and read the same there, and are not too large together."""
        reads, later = self._reads(first), self._reads(second)
        if first.device != second.device or not (reads | first.stored.keys()) & later:
            return False
        if first.device.type == "cuda" and not self._lie_alike(first, second):
            return False
        stored = first.stored.keys() | second.stored.keys()
        return (
            len(reads | later | stored) <= MOST_BUFFERS
            and len(first.members.keys() | second.members.keys()) <= MOST_MEMBERS
            and all(second.domain.align(self.lowered.values[n].domain) is not None for n in first.members)
            and not self._reads_across(first, second)
        )

    def _lie_alike(self, first: Group, second: Group) -> bool:
        """Whether a GPU's programs, which go along what they store, go along what both store."""
        values = [self.lowered.values[number] for number in (*first.stored, *second.stored)]
        along_rows = all(is_one(value.strides[-1]) for value in values if value.strides)
        return along_rows or len({(value.sizes, value.strides) for value in values}) == 1

    def _reads_across(self, first: Group, second: Group) -> bool:
        """Whether ``second`` reads at other points what ``first`` stores."""
        return any(
            source in first.stored and edge.match is not Match.SAME
            for number in second.members
            for source, edge in self.edges[number]
        )

    def _reads(self, group: Group) -> set[int]:
        """Values that a group loads element by element at the points where it stands."""
        return {
            source
            for number in group.members
            for source, edge in self.edges[number]
            if source not in group.members and edge.match is Match.SAME
        }
