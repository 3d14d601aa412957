"""Running totals as one kernel of a GPU: ``cumsum`` and ``cumprod``.

    for every block of rows, in parallel:
        before = 0                                        1 for a product
        for every block of points of these rows, in order:
            totals = before joined with what the points of the block come to, each with those in front of it
            store the totals;  before = the last of them

A block's totals are computed as a tree, in float32 for 16-bit floats, else in the result's dtype.
"""

from __future__ import annotations

from typing import Any

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from inductor_codegen.ir.kernel import Kernel

POINTS = 2048
"""Points of a row that a program has at once."""
ROWS_SIDE_BY_SIDE, POINTS_OF_THESE = 64, 32
"""The block of rows that are neighbours in memory."""
_ELEMENTS = 2048
"""Of a block of several rows."""
WARPS = 4


@dataclass(frozen=True, slots=True)
class GpuScanForm:
    """``kind`` is ``sum`` or ``prod``. ``dtype`` is the target's. ``sizes`` are those of the dimensions that tell rows
    apart, and then the number of points of a row; ``source`` and ``target`` are the strides of these, in elements.
    ``side_by_side``: neighbours of the last dimension of rows are neighbours in memory."""

    kind: str
    dtype: torch.dtype
    source_dtype: torch.dtype
    sizes: tuple[int, ...]
    source: tuple[int, ...]
    target: tuple[int, ...]
    side_by_side: bool

    @property
    def rows(self) -> int:
        """How many rows there are."""
        count = 1
        for size in self.sizes[:-1]:
            count *= size
        return count

    @property
    def block(self) -> tuple[int, int]:
        """Rows and points that a program has at once, powers of two."""
        rows, points = _power_of_two(self.rows), _power_of_two(self.sizes[-1])
        if self.side_by_side:
            return min(ROWS_SIDE_BY_SIDE, rows), min(POINTS_OF_THESE, points)
        points = min(POINTS, points)
        return min(_ELEMENTS // points, rows), points

    @property
    def programs(self) -> int:
        """How many blocks of rows there are."""
        return -(-self.rows // self.block[0])


@dataclass(frozen=True, slots=True, eq=False)
class GpuScanKernel(Kernel):
    """A kernel of running totals: the outer loop goes over programs, and there are no passes."""

    form: Any = None


def _power_of_two(value: int) -> int:
    return 1 << max(value - 1, 0).bit_length()
