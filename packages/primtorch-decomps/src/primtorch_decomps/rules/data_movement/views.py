"""Specs of views: exact strides over the same memory, the alias set carried over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from fx_interface.symbols import IntLike, Relation, ShapeEnv, floordiv, maximum, minimum
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.shapes import (
    at_most,
    below,
    canonical_dim,
    canonical_dims,
    expand_sizes,
    from_front,
    infer_size,
    same,
    slice_bounds,
)
from primtorch_decomps.strides import is_one, view_strides


def _seen_as(x: TensorSpec, sizes: Sequence[IntLike], strides: Sequence[IntLike]) -> TensorSpec:
    return TensorSpec(tuple(sizes), tuple(strides), x.dtype, x.device, alias=x.alias)


def permute_dims(dims: Sequence[int], rank: int) -> tuple[int, ...]:
    """Canonical permutation of ``rank`` dimensions."""
    order = tuple(canonical_dim(d, rank) for d in dims)
    if len(order) != rank or len(set(order)) != rank:
        raise RuleMismatchError(f"{dims} does not permute {rank} dimensions")
    return order


def swapped(dim0: int, dim1: int, rank: int) -> tuple[int, ...]:
    """The permutation that exchanges two dimensions."""
    first, second = canonical_dim(dim0, rank), canonical_dim(dim1, rank)
    order = list(range(rank))
    if rank:
        order[first], order[second] = second, first
    return tuple(order)


def index_from_front(index: IntLike, size: IntLike, env: ShapeEnv) -> IntLike:
    """A position counted from the front; it must lie inside ``size``. One from data is checked at run time."""
    if not isinstance(index, int) and env.is_from_data(index):
        place = index if env.known(Relation("<=", 0, index)) else from_front(index, size)
        env.expect(Relation("<=", 0, place))
        env.expect(Relation("<", place, size))
        return place
    place = index + size if below(index, 0, env) else index
    if below(place, 0, env) or not below(place, size, env):
        raise RuleMismatchError(f"index {index} is out of range for size {size}")
    return place


def split_lengths(size: IntLike, piece: IntLike, env: ShapeEnv) -> list[IntLike]:
    """Lengths of the pieces of ``split``: all ``piece`` long but the last, which takes the rest."""
    if (isinstance(piece, int) and piece < 0) or (
        isinstance(piece, int) and piece == 0 and not same(size, 0, env)
    ):
        raise RuleMismatchError("split_size must be positive")
    if same(size, 0, env):
        return [0]
    number = env.specialize(floordiv(size + piece - 1, piece))
    return [piece] * (number - 1) + [size - piece * (number - 1)]


def chunk_lengths(size: IntLike, chunks: int, env: ShapeEnv) -> list[IntLike]:
    """Lengths of the pieces of ``chunk``."""
    if chunks < 1:
        raise RuleMismatchError("chunk expects a positive number of chunks")
    if same(size, 0, env):
        return [0] * chunks
    return split_lengths(size, floordiv(size + chunks - 1, chunks), env)


def diagonal_length(rows: IntLike, columns: IntLike, offset: int, env: ShapeEnv) -> IntLike:
    """Elements of a diagonal."""
    length = minimum(rows + min(offset, 0), columns - max(offset, 0))
    low = env.bounds(length).low
    return length if low is not None and low >= 0 else maximum(length, 0)


@spec_rule("aten.view.default")
def view(x: TensorSpec, sizes: Sequence[IntLike], *, env: ShapeEnv) -> TensorSpec:
    target = infer_size(sizes, x.numel, env)
    strides = view_strides(x.sizes, x.strides, target, env)
    if strides is None:
        raise RuleMismatchError("the strides do not allow this view")
    return _seen_as(x, target, strides)


@spec_rule("aten._unsafe_view.default")
def unsafe_view(x: TensorSpec, sizes: Sequence[IntLike], *, env: ShapeEnv) -> TensorSpec:
    return replace(view(x, sizes, env=env), alias=None)


@spec_rule("aten.view_copy.default")
def view_copy(x: TensorSpec, sizes: Sequence[IntLike], *, env: ShapeEnv) -> TensorSpec:
    target = infer_size(sizes, x.numel, env)
    return TensorSpec(target, contiguous_strides(target), x.dtype, x.device)


@spec_rule("aten._reshape_alias.default")
def reshape_alias(
    x: TensorSpec, sizes: Sequence[IntLike], strides: Sequence[IntLike], *, env: ShapeEnv
) -> TensorSpec:
    return _seen_as(x, sizes, strides)


@spec_rule("aten.reshape.default")
def reshape(x: TensorSpec, sizes: Sequence[IntLike], *, env: ShapeEnv) -> TensorSpec:
    target = infer_size(sizes, x.numel, env)
    strides = view_strides(x.sizes, x.strides, target, env)
    if strides is not None:
        return _seen_as(x, target, strides)
    return TensorSpec(target, contiguous_strides(target), x.dtype, x.device)


@spec_rule("aten.permute.default")
def permute(x: TensorSpec, dims: Sequence[int], *, env: ShapeEnv) -> TensorSpec:
    order = permute_dims(dims, x.rank)
    return _seen_as(x, [x.sizes[d] for d in order], [x.strides[d] for d in order])


@spec_rule("aten.transpose.int")
def transpose(x: TensorSpec, dim0: int, dim1: int, *, env: ShapeEnv) -> TensorSpec:
    return permute(x, swapped(dim0, dim1, x.rank), env=env)


@spec_rule("aten.t.default")
def t(x: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    if x.rank > 2:
        raise RuleMismatchError("t() expects at most 2 dimensions")
    return _seen_as(x, x.sizes[::-1], x.strides[::-1])


@spec_rule("aten.alias.default", "aten.detach.default", "aten.lift_fresh.default")
def alias(x: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    return _seen_as(x, x.sizes, x.strides)


@spec_rule("aten.lift_fresh_copy.default")
def lift_fresh_copy(x: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    return TensorSpec(x.sizes, contiguous_strides(x.sizes), x.dtype, x.device)


@spec_rule("aten.expand.default")
def expand(x: TensorSpec, sizes: Sequence[IntLike], *, implicit: bool = False, env: ShapeEnv) -> TensorSpec:
    target = expand_sizes(x.sizes, sizes, env)
    offset = len(target) - x.rank
    strides: list[IntLike] = [0] * len(target)
    for axis in range(len(target) - 1, -1, -1):
        if axis >= offset:
            size, stride = x.sizes[axis - offset], x.strides[axis - offset]
            strides[axis] = 0 if is_one(size) and not is_one(target[axis]) else stride
        elif is_one(target[axis]):
            strides[axis] = (
                target[axis + 1] * strides[axis + 1] if x.rank and axis + 1 < len(target) else int(x.rank > 0)
            )
    return _seen_as(x, target, strides)


def _keep(x: TensorSpec, kept: Sequence[int]) -> TensorSpec:
    return _seen_as(x, [x.sizes[d] for d in kept], [x.strides[d] for d in kept])


@spec_rule("aten.squeeze.default")
def squeeze(x: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    return _keep(x, [d for d in range(x.rank) if not is_one(x.sizes[d])])


@spec_rule("aten.squeeze.dim", "aten.squeeze.dims")
def squeeze_dims(x: TensorSpec, dim: int | Sequence[int], *, env: ShapeEnv) -> TensorSpec:
    dims = canonical_dims(dim, x.rank, empty_is_all=False)
    return _keep(x, [d for d in range(x.rank) if d not in dims or not is_one(x.sizes[d])])


@spec_rule("aten.unsqueeze.default")
def unsqueeze(x: TensorSpec, dim: int, *, env: ShapeEnv) -> TensorSpec:
    axis = canonical_dim(dim, x.rank + 1)
    stride = x.sizes[axis] * x.strides[axis] if axis < x.rank else 1
    sizes = (*x.sizes[:axis], 1, *x.sizes[axis:])
    return _seen_as(x, sizes, (*x.strides[:axis], stride, *x.strides[axis:]))


@spec_rule("aten.slice.Tensor")
def slice(
    x: TensorSpec,
    dim: int = 0,
    start: IntLike | None = None,
    end: IntLike | None = None,
    step: IntLike = 1,
    *,
    env: ShapeEnv,
) -> TensorSpec:
    if not x.rank or below(step, 1, env):
        raise RuleMismatchError("slice needs a dimension and a positive step")
    axis = canonical_dim(dim, x.rank)
    _, _, length = slice_bounds(x.sizes[axis], start, end, step, env)
    return _cut(x, axis, length, step)


def _cut(x: TensorSpec, axis: int, length: IntLike, step: IntLike = 1) -> TensorSpec:
    sizes = (*x.sizes[:axis], length, *x.sizes[axis + 1 :])
    strides = (*x.strides[:axis], x.strides[axis] * step, *x.strides[axis + 1 :])
    return _seen_as(x, sizes, strides)


@spec_rule("aten.narrow.default")
def narrow(x: TensorSpec, dim: int, start: IntLike, length: IntLike, *, env: ShapeEnv) -> TensorSpec:
    axis = canonical_dim(dim, x.rank)
    low = index_from_front(start, x.sizes[axis] + 1, env)
    if not at_most(low + length, x.sizes[axis], env):
        raise RuleMismatchError("narrow reaches past the end")
    return _cut(x, axis, length)


@spec_rule("aten.select.int")
def select(x: TensorSpec, dim: int, index: IntLike, *, env: ShapeEnv) -> TensorSpec:
    if not x.rank:
        raise RuleMismatchError("select() cannot be applied to a 0-dimensional tensor")
    axis = canonical_dim(dim, x.rank)
    index_from_front(index, x.sizes[axis], env)
    return _keep(x, [d for d in range(x.rank) if d != axis])


def _pieces(x: TensorSpec, dim: int, lengths: Sequence[IntLike]) -> list[Any]:
    axis = canonical_dim(dim, x.rank)
    made = {length: _cut(x, axis, length) for length in dict.fromkeys(lengths)}
    return [made[length] for length in lengths]


def _in_new_memory(pieces: Sequence[TensorSpec]) -> list[Any]:
    made = {
        piece.sizes: TensorSpec(piece.sizes, piece.strides, piece.dtype, piece.device) for piece in pieces
    }
    return [made[piece.sizes] for piece in pieces]


@spec_rule("aten.split.Tensor")
def split(x: TensorSpec, split_size: IntLike, dim: int = 0, *, env: ShapeEnv) -> list[Any]:
    return _pieces(x, dim, split_lengths(x.sizes[canonical_dim(dim, x.rank)], split_size, env))


@spec_rule("aten.split_with_sizes.default")
def split_with_sizes(
    x: TensorSpec, split_sizes: Sequence[IntLike], dim: int = 0, *, env: ShapeEnv
) -> list[Any]:
    total: IntLike = 0
    for length in split_sizes:
        if not isinstance(length, int) and env.is_from_data(length):
            env.expect(Relation("<=", 0, length))
        total = total + length
    size = x.sizes[canonical_dim(dim, x.rank)]
    if total is not size and not env.expect(Relation("==", total, size)):
        raise RuleMismatchError("split_sizes do not add up to the dimension's size")
    return _pieces(x, dim, split_sizes)


@spec_rule("aten.chunk.default")
def chunk(x: TensorSpec, chunks: int, dim: int = 0, *, env: ShapeEnv) -> list[Any]:
    return _pieces(x, dim, chunk_lengths(x.sizes[canonical_dim(dim, x.rank)], chunks, env))


@spec_rule("aten.unsafe_split.Tensor")
def unsafe_split(x: TensorSpec, split_size: IntLike, dim: int = 0, *, env: ShapeEnv) -> list[Any]:
    return _in_new_memory(split(x, split_size, dim, env=env))


@spec_rule("aten.unsafe_split_with_sizes.default")
def unsafe_split_with_sizes(
    x: TensorSpec, split_sizes: Sequence[IntLike], dim: int = 0, *, env: ShapeEnv
) -> list[Any]:
    return _in_new_memory(split_with_sizes(x, split_sizes, dim, env=env))


@spec_rule("aten.unsafe_chunk.default")
def unsafe_chunk(x: TensorSpec, chunks: int, dim: int = 0, *, env: ShapeEnv) -> list[Any]:
    return _in_new_memory(chunk(x, chunks, dim, env=env))


@spec_rule("aten.unbind.int")
def unbind(x: TensorSpec, dim: int = 0, *, env: ShapeEnv) -> list[Any]:
    if not x.rank:
        raise RuleMismatchError("unbind needs a dimension")
    axis = canonical_dim(dim, x.rank)
    piece = _keep(x, [d for d in range(x.rank) if d != axis])
    return [piece] * env.specialize(x.sizes[axis])


@spec_rule("aten.unfold.default")
def unfold(x: TensorSpec, dimension: int, size: int, step: int, *, env: ShapeEnv) -> TensorSpec:
    if not x.rank:
        if size > 1:
            raise RuleMismatchError("the window is larger than the dimension")
        return _seen_as(x, (size,), (1,))
    axis = canonical_dim(dimension, x.rank)
    if step < 1 or size < 0 or not at_most(size, x.sizes[axis], env):
        raise RuleMismatchError("unfold's window does not fit")
    number = floordiv(x.sizes[axis] - size, step) + 1
    sizes = (*x.sizes[:axis], number, *x.sizes[axis + 1 :], size)
    strides = (*x.strides[:axis], x.strides[axis] * step, *x.strides[axis + 1 :], x.strides[axis])
    return _seen_as(x, sizes, strides)


@spec_rule("aten.diagonal.default")
def diagonal(x: TensorSpec, offset: int = 0, dim1: int = 0, dim2: int = 1, *, env: ShapeEnv) -> TensorSpec:
    first, second = canonical_dim(dim1, x.rank), canonical_dim(dim2, x.rank)
    if first == second:
        raise RuleMismatchError("diagonal needs two different dimensions")
    kept = [d for d in range(x.rank) if d not in (first, second)]
    length = diagonal_length(x.sizes[first], x.sizes[second], offset, env)
    strides = (*(x.strides[d] for d in kept), x.strides[first] + x.strides[second])
    return _seen_as(x, (*(x.sizes[d] for d in kept), length), strides)


@spec_rule("aten.view.dtype")
def view_dtype(x: TensorSpec, dtype: torch.dtype, *, env: ShapeEnv) -> TensorSpec:
    if dtype.itemsize != x.dtype.itemsize:
        raise RuleMismatchError("a view of another element size")
    return TensorSpec(x.sizes, x.strides, dtype, x.device, alias=x.alias)
