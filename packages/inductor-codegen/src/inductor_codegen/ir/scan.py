"""Running totals as one kernel: ``cumsum`` and ``cumprod``, each point of a row what the row has come to so far.

    for every point of the outer loops (a row):
        total = 0                                        1 for a product
        for every point of the inner loop, in order:
            total = total + source[point];  target[point] = total

A total has more bits than its numbers, as torch's kernels have it: float64 for float32, float32 for 16-bit floats.
Threads share the rows. With ``Vector.OUTER`` neighbours of the last outer loop lie beside each other in memory.
"""

from __future__ import annotations

from typing import Any

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import IntLike
from inductor_codegen.ir.kernel import Kernel


@dataclass(frozen=True, slots=True)
class ScanForm:
    """``kind`` is ``sum`` or ``prod``. ``dtype`` is the target's, ``source`` and ``target`` have the strides, in
    elements, of the outer loops and then of the inner one."""

    kind: str
    dtype: torch.dtype
    source_dtype: torch.dtype
    source: tuple[IntLike, ...]
    target: tuple[IntLike, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ScanKernel(Kernel):
    """A kernel of running totals: one inner loop, outer loops, and no passes."""

    form: Any = None
