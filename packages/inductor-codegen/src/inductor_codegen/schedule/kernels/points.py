"""The points of a kernel: each member's index in terms of the loops that a group shares."""

from __future__ import annotations

from fx_interface.symbols import IntLike
from inductor_codegen.ir.index import Index, LoopVar, as_index, flatten
from inductor_codegen.lower.values import Depthwise, Lowered
from inductor_codegen.schedule.fusion.domain import Runs
from inductor_codegen.schedule.fusion.groups import Group, Position
from inductor_codegen.schedule.kernels.unrolling import loops_over_rows, unrolled_axes

Point = tuple[Index, ...]


class Points:
    """The loop variables of a group, and each member's index in terms of them; along the ``unrolled`` dimensions it is
    where ``fixed`` says."""

    def __init__(self, group: Group, lowered: Lowered) -> None:
        self._domain = group.domain
        for number, known in group.members.items():  # cut as finely as any member needs before naming loops
            value = lowered.values[number]
            if Position.ROW in known and self._domain.outer is not None:
                self._domain.align_row(value.sizes)
            if number in group.reductions or Position.FULL in known:
                self._domain.align(value.domain)
        self.unrolled = unrolled_axes(group, lowered)
        self.fixed: dict[int, int] = {}
        self.tap_loop = _tap_loop(group, lowered)
        self.loops = [LoopVar(f"i{axis}", size) for axis, size in enumerate(self._domain.dims)]

    def full(self, sizes: tuple[IntLike, ...]) -> Point:
        """The index of a member that runs over all loops."""
        return self._point(self._domain.align(sizes))

    def row(self, sizes: tuple[IntLike, ...]) -> Point:
        """The index of a member that runs over the outer loops."""
        return self._point(self._domain.align_row(sizes))

    def _point(self, runs: Runs | None) -> Point:
        assert runs is not None
        loops = self.loops
        return tuple(
            flatten([self._place(axis) for axis in run], [loops[axis].extent for axis in run]) for run in runs
        )

    def _place(self, axis: int) -> Index:
        return Index(self.fixed[axis]) if axis in self.fixed else as_index(self.loops[axis])


def _tap_loop(group: Group, lowered: Lowered) -> LoopVar | None:
    """The loop over the rows of a window, if the group has one that is not written out."""
    for number in group.windows:
        formula = lowered.values[number].formula
        assert isinstance(formula, Depthwise)
        if loops_over_rows(formula):
            return LoopVar("taps", formula.windows[0].length)
    return None
