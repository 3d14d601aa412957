"""Domains: the loops that a group of values shares, as dimensions cut finely enough for every member's
sizes.
"""

from __future__ import annotations

from collections.abc import Sequence

from fx_interface.symbols import IntLike
from inductor_codegen.lower.views import Sizes, divides, is_one

Runs = tuple[tuple[int, ...], ...]
"""For each dimension of a member the positions of the domain dimensions that make it up, outermost first."""


class Domain:
    """Dimensions in row-major order; ``outer[k]`` tells whether dimension k is kept by the group's
    reductions.

    ``outer`` is None as long as the group has no reduction. Sizes of 1 are left out. Mutable: aligning a
    member whose sizes are finer cuts a dimension in two, (B, S*H) -> (B, S, H).
    """

    __slots__ = ("dims", "outer")

    def __init__(self, sizes: Sequence[IntLike], outer: Sequence[bool] | None = None) -> None:
        kept = [axis for axis, size in enumerate(sizes) if not is_one(size)]
        self.dims = [sizes[axis] for axis in kept]
        self.outer = None if outer is None else [outer[axis] for axis in kept]

    def align(self, sizes: Sizes) -> Runs | None:
        """How a member of these sizes runs over all dimensions; None if the sizes do not divide."""
        return self._align(sizes, list(range(len(self.dims))))

    def align_row(self, sizes: Sizes) -> Runs | None:
        """How a member of these sizes runs over the outer dimensions."""
        assert self.outer is not None
        return self._align(sizes, [axis for axis, kept in enumerate(self.outer) if kept])

    def _align(self, sizes: Sizes, axes: list[int]) -> Runs | None:
        """As ``align``, over the dimensions ``axes``. Sizes that do not divide leave the domain as it was."""
        dims, outer = self.dims, self.outer
        runs = self._cut_to(sizes, axes)
        if runs is None:
            self.dims, self.outer = dims, outer
        return runs

    def _cut_to(self, sizes: Sizes, axes: list[int]) -> Runs | None:
        runs: list[tuple[int, ...]] = []
        position = 0
        for size in sizes:
            run: list[int] = []
            rest = size
            while not is_one(rest):
                if position == len(axes):
                    return None
                axis = axes[position]
                have = self.dims[axis]
                if have != rest and not divides(have, rest):
                    whole = self._count_of(rest, axes[position:])
                    if whole:
                        run += axes[position : position + whole]
                        position += whole
                        break
                    if not divides(rest, have):
                        return None
                    self._cut(axis, rest, have // rest)
                    axes[position + 1 :] = [axis + 1, *(other + 1 for other in axes[position + 1 :])]
                    have = rest
                run.append(axis)
                rest = 1 if have == rest else rest // have
                position += 1
            runs.append(tuple(run))
        return tuple(runs) if position == len(axes) else None

    def _count_of(self, size: IntLike, axes: Sequence[int]) -> int:
        """How many of the dimensions ``axes`` make up ``size``, the first of which need not be known to divide it: n//2
        and 2 are an even n. 0 if that is not known of any."""
        inner: IntLike = 1
        for count, axis in enumerate(axes[1:], 2):
            inner = inner * self.dims[axis]
            if divides(inner, size) and size // inner == self.dims[axes[0]]:
                return count
        return 0

    def cut(self, axis: int, size: IntLike) -> None:
        """Dimension ``axis`` becomes two, the second of ``size``, which divides it."""
        self._cut(axis, self.dims[axis] // size, size)

    def _cut(self, axis: int, first: IntLike, second: IntLike) -> None:
        dims, outer = self.dims, self.outer  # not changed in place: ``_align`` may take the cut back
        self.dims = [*dims[:axis], first, second, *dims[axis + 1 :]]
        if outer is not None:
            self.outer = [*outer[: axis + 1], *outer[axis:]]

    def select(self, sizes: Sizes, kept: Sequence[int]) -> tuple[int, ...] | None:
        """The domain dimensions that a member's dimensions ``kept`` are made of."""
        runs = self.align(sizes)
        return None if runs is None else tuple(axis for dim in kept for axis in runs[dim])

    def split(self, axes: Sequence[int]) -> None:
        """Declare that reductions keep exactly these dimensions."""
        self.outer = [axis in axes for axis in range(len(self.dims))]

    @property
    def outer_axes(self) -> tuple[int, ...]:
        """The dimensions that reductions keep."""
        assert self.outer is not None
        return tuple(axis for axis, kept in enumerate(self.outer) if kept)
