"""Sums by index as one kernel: each point of a source is added to the place of a target that a number from data names.

    for every point of the loops, in order:
        row = index[point];                            an error where it is out of range
        target[row and point] += source[point];        but for rows that are skipped

One loop after the other and one point after the other, as torch's kernels do it with one thread. Threads share a loop
whose points are added to different memory, or else the target's rows, so that each sum has its terms in the same order
with any number of them.
"""

from __future__ import annotations

from typing import Any

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import IntLike
from inductor_codegen.ir.kernel import Kernel

SOURCE, INDEX, TARGET = "in0", "in1", "out0"
"""The names of a kernel's buffer parameters, in their order."""


@dataclass(frozen=True, slots=True)
class ScatterForm:
    """``dtype`` is the target's. Strides, in elements, have a number for each loop of the kernel: ``index`` 0 where all
    points of the loop have one row, ``target`` 0 where a row takes the place of the loop. ``rows`` and ``step`` are the
    size and the stride of the dimension that is indexed. Negative rows count from the end if it ``wraps``; the row
    ``skipped`` gets nothing. Threads share the loop ``shared``, or the rows. ``beside``: what the innermost loop adds
    to are all rows at one place, whose sums are kept apart, in float32 if they have 16 bits, while the loop runs.
    """

    dtype: torch.dtype
    source_dtype: torch.dtype
    index_dtype: torch.dtype
    source: tuple[IntLike, ...]
    index: tuple[IntLike, ...]
    target: tuple[IntLike, ...]
    rows: IntLike
    step: IntLike
    wraps: bool
    skipped: int | None
    shared: int | None
    beside: bool

    @property
    def depth(self) -> int:
        """How many loops stand around the choice of a row."""
        moving = [
            place for place, stride in enumerate(self.index) if not (isinstance(stride, int) and stride == 0)
        ]
        return moving[-1] + 1 if moving else 0


@dataclass(frozen=True, slots=True, eq=False)
class ScatterKernel(Kernel):
    """A kernel that adds by index: its outer loops are those of the source, and it has no passes."""

    form: Any = None
