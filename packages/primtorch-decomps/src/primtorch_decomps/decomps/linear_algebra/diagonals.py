"""Diagonals: a matrix from its diagonal, its trace, a diagonal replaced, and the gradient of taking one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from fx_interface.symbols import IntLike, ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps import promotion
from primtorch_decomps.decomps.arithmetic.reductions import accumulate
from primtorch_decomps.decomps.data_movement.indexing import fits, overwritten_spec
from primtorch_decomps.decomps.data_movement.views import diagonal
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.prims import PrimTensor, current_trace, ops
from primtorch_decomps.registry import decomposes
from primtorch_decomps.rules.data_movement.views import diagonal_length
from primtorch_decomps.shapes import Sizes, canonical_dim, same

_INDEX = torch.int64


def _axes(dim1: int, dim2: int, rank: int) -> tuple[int, int]:
    first, second = canonical_dim(dim1, rank), canonical_dim(dim2, rank)
    if first == second or rank < 2:
        raise RuleMismatchError("a diagonal needs two different dimensions")
    return first, second


def _on_diagonal(sizes: Sizes, first: int, second: int, offset: int, device: torch.device) -> PrimTensor:
    """Where column - row equals ``offset``."""
    rows = ops.iota(sizes[first], offset, 1, _INDEX, device)
    columns = ops.iota(sizes[second], 0, 1, _INDEX, device)
    return ops.eq(
        ops.broadcast_in_dim(columns, sizes, (second,)), ops.broadcast_in_dim(rows, sizes, (first,))
    )


def _spread(values: PrimTensor, sizes: Sizes, first: int, second: int, offset: int) -> PrimTensor:
    """``values`` (the diagonal last) over the whole matrix, each in its row (its column below the main diagonal)."""
    axis = first if offset >= 0 else second
    before: list[IntLike] = [0] * values.rank
    after: list[IntLike] = [0] * values.rank
    after[-1] = sizes[axis] - values.sizes[-1]
    filled = ops.pad(values, before, after, promotion.cast_number(0, values.dtype))
    rest = [d for d in range(len(sizes)) if d not in (first, second)]
    order = sorted([*rest, axis])
    moved = ops.permute(filled, [[*rest, axis].index(d) for d in order])
    return ops.broadcast_in_dim(moved, sizes, order)


def _diagonal_of(values: PrimTensor, x: PrimTensor, dims: tuple[int, int], offset: int) -> PrimTensor:
    """``x`` with the diagonal ``values``."""
    inside = _on_diagonal(x.sizes, *dims, offset, x.device)
    return ops.where(inside, _spread(values, x.sizes, *dims, offset), x)


def _diagonal_scatter_spec(
    x: TensorSpec, src: TensorSpec, offset: int = 0, dim1: int = 0, dim2: int = 1, *, env: ShapeEnv
) -> TensorSpec:
    first, second = _axes(dim1, dim2, x.rank)
    rest = [size for axis, size in enumerate(x.sizes) if axis not in (first, second)]
    length = diagonal_length(x.sizes[first], x.sizes[second], offset, env)
    if not fits(src, (*rest, length), env):
        raise RuleMismatchError("a diagonal of other sizes than what is written there")
    return overwritten_spec(x, env=env)


@decomposes("aten.diagonal_scatter.default", rule=_diagonal_scatter_spec)
def diagonal_scatter(
    x: PrimTensor, src: PrimTensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> PrimTensor:
    dims = _axes(dim1, dim2, x.rank)
    return _diagonal_of(ops.convert_dtype(src, x.dtype), x, dims, offset)


@decomposes("aten.diagonal_backward.default")
def diagonal_backward(
    grad: PrimTensor, input_sizes: Sequence[IntLike], offset: int, dim1: int, dim2: int
) -> PrimTensor:
    sizes = tuple(input_sizes)
    zero = ops.full(sizes, promotion.cast_number(0, grad.dtype), grad.dtype, grad.device)
    return _diagonal_of(grad, zero, _axes(dim1, dim2, len(sizes)), offset)


def _embedded_sizes(x: Any, offset: int, dims: tuple[int, int]) -> tuple[IntLike, ...]:
    length = x.sizes[-1] + abs(offset)
    sizes: list[IntLike] = list(x.sizes[:-1])
    for axis in sorted(dims):
        sizes.insert(axis, length)
    return tuple(sizes)


def _embedded_spec(
    x: TensorSpec, offset: int = 0, dim1: int = -2, dim2: int = -1, *, env: ShapeEnv
) -> TensorSpec:
    sizes = _embedded_sizes(x, offset, _axes(dim1, dim2, x.rank + 1))
    return TensorSpec(sizes, contiguous_strides(sizes), x.dtype, x.device)


@decomposes("aten.diag_embed.default", rule=_embedded_spec)
def diag_embed(x: PrimTensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> PrimTensor:
    first, second = _axes(dim1, dim2, x.rank + 1)
    sizes = _embedded_sizes(x, offset, (first, second))
    zero = ops.full(sizes, promotion.cast_number(0, x.dtype), x.dtype, x.device)
    return _diagonal_of(x, zero, (first, second), offset)


@decomposes("aten.trace.default")
def trace(x: PrimTensor) -> PrimTensor:
    env = current_trace().env
    if x.rank != 2 or same(diagonal_length(x.sizes[0], x.sizes[1], 0, env), 0, env):
        raise RuleMismatchError("the trace of a matrix")
    return accumulate(ops.sum, diagonal(x), None, False, None)


def _block_diag_spec(tensors: Sequence[TensorSpec], *, env: ShapeEnv) -> TensorSpec:
    height: IntLike = 0
    width: IntLike = 0
    for block in tensors:
        if block.rank > 2:
            raise RuleMismatchError("block_diag takes matrices, vectors and numbers")
        both: Sizes = (*(1,) * (2 - block.rank), *block.sizes)
        height, width = height + both[0], width + both[1]
    sizes = (height, width)
    return TensorSpec(sizes, contiguous_strides(sizes), promotion.result_type(tensors), tensors[0].device)


@decomposes("aten.block_diag.default", rule=_block_diag_spec)
def block_diag(tensors: Sequence[PrimTensor]) -> PrimTensor:
    """Blocks padded to the whole width, joined; vectors count as rows."""
    dtype = promotion.result_type(tensors)
    blocks = [ops.reshape(ops.convert_dtype(t, dtype), (*(1,) * (2 - t.rank), *t.sizes)) for t in tensors]
    width: IntLike = 0
    for block in blocks:
        width = width + block.sizes[1]
    rows: list[PrimTensor] = []
    start: IntLike = 0
    for block in blocks:
        rest = width - start - block.sizes[1]
        rows.append(ops.pad(block, (0, start), (0, rest), promotion.cast_number(0, dtype)))
        start = start + block.sizes[1]
    return rows[0] if len(rows) == 1 else ops.cat(rows, 0)
