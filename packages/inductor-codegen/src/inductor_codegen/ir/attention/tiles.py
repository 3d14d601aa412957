"""Tiles of a kernel of attention on a GPU: their sizes, and how a program that has one is compiled."""

from __future__ import annotations

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from inductor_codegen.ir.attention.form import AttentionForm, Task


@dataclass(frozen=True, slots=True)
class GpuTiles:
    """How a GPU takes a kernel: rows of the tile that a program keeps, columns of those that it goes through, and how
    the program is compiled."""

    rows: int
    columns: int
    warps: int
    stages: int


_SMALLEST = 16
"""Rows of the smallest tile that a matrix unit takes."""


def gpu_tiles(form: AttentionForm) -> GpuTiles | None:
    """The tiles of a kernel on a GPU; None where none of them divides the blocks."""
    wide, narrow = max(form.width, form.value_width) > 128, max(form.width, form.value_width) <= 64
    halves = form.dtype.itemsize == 2
    if form.dtype is torch.float64:
        tiles = GpuTiles(32, 16, 4, 1)
    elif form.task is Task.FORWARD:
        tiles = GpuTiles(128, 64, 4, 3) if halves and not wide else GpuTiles(64, 32, 4, 2)
        if halves and not narrow and not wide:
            tiles = GpuTiles(128, 64, 8, 2)
    else:
        tiles = GpuTiles(64, 64, 4, 2) if halves and narrow else GpuTiles(32, 32, 4, 1)
        if halves and not narrow and not wide:
            tiles = GpuTiles(64, 32, 4, 2)
    if form.block_size is None:
        return tiles
    along, across = form.block_size if form.task is not Task.KEYS else form.block_size[::-1]
    rows, columns = _divisor(tiles.rows, along), _divisor(tiles.columns, across)
    if rows < _SMALLEST or columns < _SMALLEST:
        return None
    return GpuTiles(rows, columns, tiles.warps, tiles.stages)


def _divisor(tile: int, block: int) -> int:
    """The largest power of two up to ``tile`` that divides ``block``."""
    while block % tile:
        tile //= 2
    return tile
