"""Groups that are merged while they are made: side by side they read what they have in common once.

On a GPU a group that stores a value and the pointwise groups that read it at the same points become one, and are
launched once. Reductions over the same points into the same rows that load one tensor do on a CPU as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from inductor_codegen.lower.values import Lowered, Reduction, Value
from inductor_codegen.schedule.fusion.groups import Group, Position
from inductor_codegen.schedule.fusion.order import Dependencies
from inductor_codegen.schedule.fusion.siblings import Siblings

MAX_MEMBERS = 120
"""Values in one kernel: beyond, compilers get slow and registers run out."""


class Merger:
    """Merges groups of a grouping while it is made."""

    def __init__(
        self,
        lowered: Lowered,
        groups: dict[int, Group],
        homes: list[list[Group]],
        dependencies: Dependencies,
    ) -> None:
        self.lowered = lowered
        self.groups = groups
        self.homes = homes
        self.dependencies = dependencies
        self._siblings = Siblings(lowered)

    def merge_readers(self, group: Group, units: Sequence[int]) -> None:
        """``group`` stores a value that the groups ``units`` read at the points where it stands."""
        if group.device.type != "cuda":
            return
        for unit in units:
            if self._agree(group, self.groups[unit]):
                self.merge(group, self.groups[unit])

    def merge_siblings(self, reduction: Value, home: Group) -> None:
        """``home`` is the group of a reduction, whose readers are known."""
        for unit in self._siblings.of(reduction):
            other = self.groups.get(unit)
            if (
                other is not None
                and other is not home
                and self._siblings.may_join(home, other)
                and self._lie_beside(home, other)
            ):
                self.merge(home, other)
        self._siblings.add(reduction, home.unit)

    def merge(self, group: Group, other: Group) -> None:
        """``group`` takes over what ``other`` computes."""
        for number, known in other.members.items():
            group.members.setdefault(number, set()).update(known)
            self.homes[number] = [home for home in self.homes[number] if home not in (group, other)] + [group]
        group.stored |= other.stored
        group.reductions |= other.reductions
        group.windows |= other.windows
        del self.groups[other.unit]
        self.dependencies.merge(group.unit, other.unit)

    def _agree(self, group: Group, other: Group) -> bool:
        """Whether the members of ``other`` run over the points of two pointwise groups, or are computed where they are
        read, and nothing has to be computed after one of them and before the other."""
        return (
            group is not other
            and not (group.reductions or other.reductions)
            and not (group.windows and other.windows)
            and group.domain.outer is other.domain.outer is None
            and len({*group.members, *other.members}) < MAX_MEMBERS
            and Position.ROW not in set().union(*group.members.values(), *other.members.values())
            and all(
                group.domain.align(self.lowered.values[number].domain) is not None
                for number, known in other.members.items()
                if Position.FULL in known
            )
            and not self.dependencies.reaches_around(group.unit, other.unit)
            and not self.dependencies.reaches_around(other.unit, group.unit)
        )

    def _lie_beside(self, group: Group, other: Group) -> bool:
        """Whether two groups of reductions run over the same points and rows, and neither needs the other."""
        for number in other.reductions:
            formula, sizes = self.lowered.values[number].formula, self.lowered.values[number].domain
            assert isinstance(formula, Reduction)
            kept = [dim for dim in range(len(sizes)) if dim not in formula.dims]
            if group.domain.select(sizes, kept) != group.domain.outer_axes:
                return False
        return (
            len({*group.members, *other.members}) < MAX_MEMBERS
            and all(self._stands_in(number, known, group) for number, known in other.members.items())
            and not self.dependencies.reaches(group.unit, (other.unit,))
            and not self.dependencies.reaches(other.unit, (group.unit,))
        )

    def _stands_in(self, number: int, known: set[Position], group: Group) -> bool:
        """Whether a member of another group can stand in this one as it does there."""
        value = self.lowered.values[number]
        full = Position.FULL not in known or group.domain.align(value.sizes) is not None
        return full and (Position.ROW not in known or group.domain.align_row(value.sizes) is not None)
