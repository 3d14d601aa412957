"""Kernels in the place of a library call."""

from __future__ import annotations

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import IntLike
from inductor_codegen.ir.kernel import Kernel
from inductor_codegen.lower.values import Placed, Value


@dataclass(frozen=True, slots=True)
class Called:
    """A kernel, and what it is given: tensors and sizes in the order of its parameters."""

    kernel: Kernel
    buffers: tuple[Placed | Value, ...]
    sizes: tuple[IntLike, ...]
