"""Kernels: one fused piece of loop IR, named by its content.

    kernel ::= parameters, outer loops, inner loops, passes
    for every point of the outer loops (a row), in parallel:
        for each pass, in order:
            for every point of the inner loops: keep*, accumulate*, store*        (``Pass.points``)
            once for the row, when that is over:  store*                          (``Pass.row``)

A scalar of ``points`` may use ``Total``s and ``Kept``s of earlier passes; a scalar of ``row`` also the totals
of its own pass, but no inner loop variable. At one point (or row) every scalar is computed before anything is
stored. Every reduction runs over all inner loops. A kernel without reductions has one pass.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import IntLike
from inductor_codegen.ir.index import Index, LoopVar
from inductor_codegen.ir.scalar import Scalar


class Access(Enum):
    """What a kernel does with a buffer parameter."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class BufferParameter:
    """A data pointer. ``name`` is local to the kernel."""

    name: str
    dtype: torch.dtype
    access: Access


@dataclass(frozen=True, slots=True)
class SizeParameter:
    """A 64-bit integer known when the kernel is called: the symbol ``name`` of the kernel's sizes. ``least``: it is at
    least that, if that is known and may matter.
    """

    name: str
    least: int | None = None


@dataclass(frozen=True, slots=True)
class FloatParameter:
    """A double known when the kernel is called."""

    name: str


Parameter: TypeAlias = BufferParameter | SizeParameter | FloatParameter


class Vector(Enum):
    """Which loop runs along memory, and so is the one to vectorise."""

    INNER = "inner"
    """The last inner loop: a row's totals are scalars."""
    OUTER = "outer"
    """The last outer loop: neighbouring rows are reduced side by side, as for a sum over the batch."""


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """``buffer[index] = value``, converted to the buffer's dtype. No other point stores to the same
    element.
    """

    buffer: str
    index: Index
    value: Scalar


@dataclass(frozen=True, slots=True, eq=False)
class Accumulate:
    """Reduce ``value`` over the inner loops into ``Total(accumulator)``. ``kind`` is a reduction primitive's
    name.

    ``position`` is the value that argmax and argmin select, the row-major position in the reduced dimensions.
    """

    accumulator: int
    kind: str
    value: Scalar
    dtype: torch.dtype
    position: Index | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Keep:
    """Remember ``value`` for the same point of later passes as ``Kept(slot)``: worth more than computing it
    again.
    """

    slot: int
    value: Scalar


Statement: TypeAlias = Store | Accumulate | Keep


@dataclass(frozen=True, slots=True, eq=False)
class Pass:
    """One run over the inner loops, and what follows it once a row."""

    points: tuple[Statement, ...]
    row: tuple[Store, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """A function on memory. Equal kernels have equal names, in every program and process.

    As C++ its symbol is ``name`` and its signature ``int32_t(const int64_t* given, int64_t share, int64_t shares)``:
    the addresses of the buffers, the sizes and the bits of the floats in order, and which share of the work to do
    (``codegen.cpp.sharing``). It returns 0, or 1 when an index that came from data was out of range (nothing outside of
    any buffer was touched; the caller raises IndexError). Pointers of one call may be equal only where the program's
    ``Reuse`` made them so. ``narrow``: its indices fit 32 bits with all sizes that it is called with. ``windows``: a
    GPU's programs take the points of its last outer or only inner loop side by side, and of all others a few; what it
    sums over (``inner``, then) they take one point after the other. ``taps``: a reduction that has a sum for each tap
    of a window, so that a GPU's programs hold few elements of each.
    """

    name: str
    parameters: tuple[Parameter, ...]
    outer: tuple[LoopVar, ...]
    inner: tuple[LoopVar, ...]
    vector: Vector
    passes: tuple[Pass, ...]
    comments: tuple[str, ...] = ()
    narrow: bool = False
    windows: bool = False
    taps: bool = False

    @property
    def buffers(self) -> tuple[BufferParameter, ...]:
        """The pointer parameters."""
        return tuple(p for p in self.parameters if isinstance(p, BufferParameter))

    @property
    def least_sizes(self) -> dict[str, int]:
        """What the size parameters are at least, by name, where that is known."""
        sizes = (p for p in self.parameters if isinstance(p, SizeParameter))
        return {size.name: size.least for size in sizes if size.least is not None}


def extent_product(loops: tuple[LoopVar, ...]) -> IntLike:
    """How many points the loops have."""
    total: IntLike = 1
    for loop in loops:
        total = total * loop.extent
    return total
