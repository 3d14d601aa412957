"""A matrix product as one kernel: tiles of the result, and what is computed of each element before it is stored.

    for every tile of rows and columns, in parallel:
        sums = 0
        for every tile of the dimension between the factors:  sums += left[rows, between] @ right[between, columns]
        store what the stores say, computed from the sums and other tensors at the same places

The sums, in float32, are the value kept under ``SUMS`` in the scalars of ``stores``, whose loops are ``points``.
"""

from __future__ import annotations

from typing import Any

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from inductor_codegen.ir.index import LoopVar
from inductor_codegen.ir.kernel import Kernel, Store

SUMS = 0
"""The place of the sums among the values that a kernel keeps."""


@dataclass(frozen=True, slots=True)
class ProductTiles:
    """How a GPU takes a product: rows, columns and points between of a tile, how many tiles of rows are taken for one
    tile of columns before the next, and the warps and stages that Triton is told."""

    rows: int
    columns: int
    between: int
    group: int
    warps: int
    stages: int


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor's parameter, and its strides in elements: of the batch, of rows and of columns."""

    name: str
    strides: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class ProductForm:
    """``sizes``: of the batch, rows, between, columns. ``points`` are the loops over batch, rows and columns."""

    dtype: torch.dtype
    sizes: tuple[int, int, int, int]
    left: Factor
    right: Factor
    points: tuple[LoopVar, LoopVar, LoopVar]
    stores: tuple[Store, ...]
    tiles: ProductTiles

    @property
    def count(self) -> int:
        """How many tiles the results have."""
        batch, rows, _, columns = self.sizes
        return batch * -(-rows // self.tiles.rows) * -(-columns // self.tiles.columns)


@dataclass(frozen=True, slots=True, eq=False)
class ProductKernel(Kernel):
    """A kernel of a product; its only loop is over tiles, and it has no passes."""

    form: Any = None
