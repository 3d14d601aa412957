"""Views: reshaping, permuting, slicing, expanding. Their strides are given by ``rules.data_movement.views``."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fx_interface.symbols import Expr, IntLike
from primtorch_decomps.prims import PrimTensor, current_trace, ops
from primtorch_decomps.registry import decomposes
from primtorch_decomps.rules.data_movement.views import (
    chunk_lengths,
    diagonal_length,
    index_from_front,
    permute_dims,
    split_lengths,
    swapped,
)
from primtorch_decomps.shapes import canonical_dim, canonical_dims, expand_sizes, infer_size, slice_bounds

_INDEX = torch.int64


@decomposes(
    "aten.view.default", "aten._unsafe_view.default", "aten.reshape.default", "aten._reshape_alias.default"
)
def view(x: PrimTensor, sizes: Sequence[IntLike], strides: Sequence[IntLike] | None = None) -> PrimTensor:
    return ops.reshape(x, infer_size(sizes, x.numel, current_trace().env))


@decomposes("aten.view_copy.default")
def view_copy(x: PrimTensor, sizes: Sequence[IntLike]) -> PrimTensor:
    return view(x, sizes)


@decomposes("aten.permute.default")
def permute(x: PrimTensor, dims: Sequence[int]) -> PrimTensor:
    return ops.permute(x, permute_dims(dims, x.rank))


@decomposes("aten.transpose.int")
def transpose(x: PrimTensor, dim0: int, dim1: int) -> PrimTensor:
    return ops.permute(x, swapped(dim0, dim1, x.rank))


@decomposes("aten.t.default")
def t(x: PrimTensor) -> PrimTensor:
    return ops.permute(x, (1, 0)) if x.rank == 2 else x


@decomposes(
    "aten.alias.default", "aten.detach.default", "aten.lift_fresh.default", "aten.lift_fresh_copy.default"
)
def alias(x: PrimTensor) -> PrimTensor:
    return x


@decomposes("aten.expand.default")
def expand(x: PrimTensor, sizes: Sequence[IntLike], *, implicit: bool = False) -> PrimTensor:
    target = expand_sizes(x.sizes, sizes, current_trace().env)
    offset = len(target) - x.rank
    return ops.broadcast_in_dim(x, target, tuple(range(offset, len(target))))


@decomposes("aten.squeeze.default")
def squeeze(x: PrimTensor) -> PrimTensor:
    return _drop_ones(x, range(x.rank))


@decomposes("aten.squeeze.dim", "aten.squeeze.dims")
def squeeze_dims(x: PrimTensor, dim: int | Sequence[int]) -> PrimTensor:
    return _drop_ones(x, canonical_dims(dim, x.rank, empty_is_all=False))


def _drop_ones(x: PrimTensor, dims: Sequence[int]) -> PrimTensor:
    sizes = [n for axis, n in enumerate(x.sizes) if axis not in dims or isinstance(n, Expr) or n != 1]
    return ops.reshape(x, tuple(sizes))


@decomposes("aten.unsqueeze.default")
def unsqueeze(x: PrimTensor, dim: int) -> PrimTensor:
    axis = canonical_dim(dim, x.rank + 1)
    sizes = (*x.sizes[:axis], 1, *x.sizes[axis:])
    return ops.broadcast_in_dim(x, sizes, tuple(d for d in range(x.rank + 1) if d != axis))


def cut(x: PrimTensor, axis: int, start: IntLike, end: IntLike, step: IntLike, length: IntLike) -> PrimTensor:
    """``x[start:end:step]`` along ``axis``, of known length."""
    starts: list[IntLike] = [0] * x.rank
    limits = list(x.sizes)
    steps: list[IntLike] = [1] * x.rank
    starts[axis], limits[axis], steps[axis] = start, end, step
    sizes = (*x.sizes[:axis], length, *x.sizes[axis + 1 :])
    return ops.slice(x, starts, limits, steps, sizes)


@decomposes("aten.slice.Tensor")
def slice(
    x: PrimTensor, dim: int = 0, start: IntLike | None = None, end: IntLike | None = None, step: IntLike = 1
) -> PrimTensor:
    axis = canonical_dim(dim, x.rank)
    low, high, length = slice_bounds(x.sizes[axis], start, end, step, current_trace().env)
    return cut(x, axis, low, high, step, length)


@decomposes("aten.narrow.default")
def narrow(x: PrimTensor, dim: int, start: IntLike, length: IntLike) -> PrimTensor:
    axis = canonical_dim(dim, x.rank)
    low = index_from_front(start, x.sizes[axis] + 1, current_trace().env)
    return cut(x, axis, low, low + length, 1, length)


@decomposes("aten.select.int")
def select(x: PrimTensor, dim: int, index: IntLike) -> PrimTensor:
    axis = canonical_dim(dim, x.rank)
    place = index_from_front(index, x.sizes[axis], current_trace().env)
    return ops.reshape(cut(x, axis, place, place + 1, 1, 1), (*x.sizes[:axis], *x.sizes[axis + 1 :]))


def _pieces(x: PrimTensor, axis: int, lengths: Sequence[IntLike]) -> list[PrimTensor]:
    pieces: list[PrimTensor] = []
    start: IntLike = 0
    for length in lengths:
        pieces.append(cut(x, axis, start, start + length, 1, length))
        start = start + length
    return pieces


@decomposes("aten.split.Tensor", "aten.unsafe_split.Tensor")
def split(x: PrimTensor, split_size: IntLike, dim: int = 0) -> list[PrimTensor]:
    axis = canonical_dim(dim, x.rank)
    return _pieces(x, axis, split_lengths(x.sizes[axis], split_size, current_trace().env))


@decomposes("aten.split_with_sizes.default", "aten.unsafe_split_with_sizes.default")
def split_with_sizes(x: PrimTensor, split_sizes: Sequence[IntLike], dim: int = 0) -> list[PrimTensor]:
    return _pieces(x, canonical_dim(dim, x.rank), split_sizes)


@decomposes("aten.chunk.default", "aten.unsafe_chunk.default")
def chunk(x: PrimTensor, chunks: int, dim: int = 0) -> list[PrimTensor]:
    axis = canonical_dim(dim, x.rank)
    return _pieces(x, axis, chunk_lengths(x.sizes[axis], chunks, current_trace().env))


@decomposes("aten.unbind.int")
def unbind(x: PrimTensor, dim: int = 0) -> list[PrimTensor]:
    axis = canonical_dim(dim, x.rank)
    number = current_trace().env.specialize(x.sizes[axis])
    return [select(x, axis, place) for place in range(number)]


@decomposes("aten.unfold.default")
def unfold(x: PrimTensor, dimension: int, size: int, step: int) -> PrimTensor:
    """Windows along a dimension, as an index: element [.., i, .., j] is x[.., i * step + j, ..]."""
    if not x.rank:
        return ops.reshape(x, (1,))
    axis = canonical_dim(dimension, x.rank)
    number = (x.sizes[axis] - size) // step + 1
    steps = ops.broadcast_in_dim(ops.iota(number, 0, step, _INDEX, x.device), (number, size), (0,))
    offsets = ops.broadcast_in_dim(ops.iota(size, 0, 1, _INDEX, x.device), (number, size), (1,))
    windows = ops.index(x, (*(None,) * axis, steps + offsets))
    order = (*range(axis + 1), *range(axis + 2, x.rank + 1), axis + 1)
    return ops.permute(windows, order)


@decomposes("aten.diagonal.default")
def diagonal(x: PrimTensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> PrimTensor:
    first, second = canonical_dim(dim1, x.rank), canonical_dim(dim2, x.rank)
    order = (*(d for d in range(x.rank) if d not in (first, second)), first, second)
    moved = ops.permute(x, order)
    trace = current_trace()
    length = diagonal_length(x.sizes[first], x.sizes[second], offset, trace.env)
    rows = ops.iota(length, max(-offset, 0), 1, _INDEX, x.device)
    columns = ops.iota(length, max(offset, 0), 1, _INDEX, x.device)
    return ops.index(moved, (*(None,) * (x.rank - 2), rows, columns))
