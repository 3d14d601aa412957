"""Writes by index to few places of each row: a choice at each point, which is fused with what stands around it.

    zeros(3, 5).scatter_add(1, index, src), index [3, 1]   ->   where(iota(5) == index, 0 + src, 0)

With more places in a row the operators stay library calls.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from primtorch_decomps.prims import PrimTensor, current_trace, ops
from primtorch_decomps.registry import decomposes
from primtorch_decomps.shapes import canonical_dim, has_empty_rows

MOST = 4
"""Places in a row up to which a comparison for each costs less than a pass over memory."""
_LARGEST = 65504
"""The largest number of float16."""
_SUMMED = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
)


def _count(x: PrimTensor, axis: int, index: PrimTensor) -> int:
    """How many places of each row an index names; 0 if they are not few, or if some rows have none."""
    count = index.sizes[axis] if index.rank == x.rank and index.dtype == torch.int64 else 0
    simplify = current_trace().env.simplify
    same = all(
        d == axis or index.sizes[d] is size or simplify(index.sizes[d]) == simplify(size)
        for d, size in enumerate(x.sizes)
    )
    few = isinstance(count, int) and count <= MOST and same and not has_empty_rows(x.sizes, axis)
    return count if few and isinstance(count, int) else 0


def _spread(value: PrimTensor, column: int, axis: int, x: PrimTensor) -> PrimTensor:
    """One column of a value along ``axis``, repeated over the sizes of ``x``."""
    before, after = value.sizes[:axis], value.sizes[axis + 1 :]
    starts = (*(0 for _ in before), column, *(0 for _ in after))
    limits, sizes = (*before, column + 1, *after), (*before, 1, *after)
    rows = tuple(d for d in range(x.rank) if d != axis)
    value = ops.slice(value, starts, limits, (1,) * value.rank, sizes)
    flat = ops.reshape(value, tuple(value.sizes[d] for d in rows))
    return ops.broadcast_in_dim(flat, x.sizes, rows)


def _hits(x: PrimTensor, axis: int, index: PrimTensor, column: int) -> PrimTensor:
    """Where a column of the index points to. That it lies within the row is checked, as by a look-up."""
    places = ops.iota(x.sizes[axis], 0, 1, torch.int64, x.device)
    checked = ops.index(places, (index,), wraps=False)
    named = _spread(checked, column, axis, x)
    return ops.eq(ops.broadcast_in_dim(places, x.sizes, (axis,)), named)


@decomposes("aten.scatter_add.default")
def scatter_add(x: PrimTensor, dim: int, index: PrimTensor, src: PrimTensor) -> Any:
    """16-bit floats are summed up in float32, as torch's kernels do."""
    axis = canonical_dim(dim, x.rank) if x.rank else 0
    count = _count(x, axis, index) if x.rank else 0
    if not count or src.sizes != index.sizes or src.dtype != x.dtype or x.dtype not in _SUMMED:
        return NotImplemented
    halves = x.dtype in (torch.float16, torch.bfloat16)
    wide = torch.float32 if halves else x.dtype
    total, added = ops.convert_dtype(x, wide), ops.convert_dtype(src, wide)
    for column in range(count):
        hit = _hits(x, axis, index, column)
        total = ops.where(hit, ops.add(total, _spread(added, column, axis, x)), total)
    return ops.convert_dtype(total, x.dtype)


@decomposes("aten.scatter.src")
def scatter(x: PrimTensor, dim: int, index: PrimTensor, src: PrimTensor) -> Any:
    """Of several writes to one place the last one stays."""
    axis = canonical_dim(dim, x.rank) if x.rank else 0
    count = _count(x, axis, index) if x.rank else 0
    if not count or src.sizes != index.sizes or src.dtype != x.dtype:
        return NotImplemented
    for column in range(count):
        x = ops.where(_hits(x, axis, index, column), _spread(src, column, axis, x), x)
    return x


def _is_exact(value: Any, dtype: torch.dtype) -> bool:
    """Whether a number is one of a dtype, or is rounded to one; torch refuses others, or cuts them."""
    if dtype.is_floating_point:
        return isinstance(value, int | float) and not _LARGEST < abs(value) < math.inf
    if dtype == torch.bool:
        return isinstance(value, bool)
    if dtype.is_complex or not isinstance(value, int):
        return False
    return torch.iinfo(dtype).min <= value <= torch.iinfo(dtype).max


@decomposes("aten.scatter.value")
def scatter_value(x: PrimTensor, dim: int, index: PrimTensor, value: Any) -> Any:
    axis = canonical_dim(dim, x.rank) if x.rank else 0
    count = _count(x, axis, index) if x.rank else 0
    if not count or not _is_exact(value, x.dtype):
        return NotImplemented
    for column in range(count):
        x = ops.where(_hits(x, axis, index, column), value, x)
    return x
