"""Putting tensors together and moving their elements: cat, stack, padding, rolling, flipping, repeating."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from fx_interface.symbols import IntLike, Relation, ShapeEnv, mod
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps import promotion
from primtorch_decomps.decomps.data_movement.views import cut
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.prims import PrimTensor, current_trace, ops
from primtorch_decomps.registry import decomposes
from primtorch_decomps.shapes import Sizes, below, canonical_dim, canonical_dims, same, same_sizes
from primtorch_decomps.strides import (
    any_zero,
    channels_last_order,
    is_strided_channels_last,
    ordered_strides,
    preserved_strides,
)


def _legacy_empty(x: Any) -> bool:
    return x.rank == 1 and isinstance(x.sizes[0], int) and x.sizes[0] == 0


def _cat_spec(tensors: Sequence[TensorSpec], dim: int = 0, *, env: ShapeEnv) -> TensorSpec:
    used = [t for t in tensors if not _legacy_empty(t)] or list(tensors)[:1]
    if not used or not used[0].rank:
        raise RuleMismatchError("cat needs tensors with dimensions")
    first = used[0]
    axis = canonical_dim(dim, first.rank)
    total: IntLike = 0
    for tensor in used:
        rest = (*tensor.sizes[:axis], *tensor.sizes[axis + 1 :])
        if tensor.rank != first.rank or not same_sizes(
            rest, (*first.sizes[:axis], *first.sizes[axis + 1 :]), env
        ):
            raise RuleMismatchError("cat needs equal sizes except in one dimension")
        total = total + tensor.sizes[axis]
    sizes = (*first.sizes[:axis], total, *first.sizes[axis + 1 :])
    strides = joined_strides(used, sizes, env)
    return TensorSpec(sizes, strides, promotion.result_type(tensors), first.device)


def joined_strides(tensors: Sequence[TensorSpec], sizes: Sizes, env: ShapeEnv) -> Sizes:
    """Channels-last if every tensor suggests it, else row-major."""
    order = channels_last_order(len(sizes))
    if order is not None and all(is_strided_channels_last(t.sizes, t.strides, env) for t in tensors):
        return ordered_strides(sizes, order)
    return contiguous_strides(sizes)


@decomposes("aten.cat.default", rule=_cat_spec)
def cat(tensors: Sequence[PrimTensor], dim: int = 0) -> PrimTensor:
    dtype = promotion.result_type(tensors)
    used = [ops.convert_dtype(t, dtype) for t in tensors if not _legacy_empty(t)]
    if not used:
        return ops.convert_dtype(tensors[0], dtype)
    return used[0] if len(used) == 1 else ops.cat(used, canonical_dim(dim, used[0].rank))


def _stack_spec(tensors: Sequence[TensorSpec], dim: int = 0, *, env: ShapeEnv) -> TensorSpec:
    first = tensors[0]
    if not all(same_sizes(t.sizes, first.sizes, env) for t in tensors):
        raise RuleMismatchError("stack needs tensors of one shape")
    axis = canonical_dim(dim, first.rank + 1)
    sizes = (*first.sizes[:axis], len(tensors), *first.sizes[axis:])
    strides = _stacked_strides(tensors, axis, sizes, env)
    return TensorSpec(sizes, strides, promotion.result_type(tensors), first.device)


def _stacked_strides(tensors: Sequence[TensorSpec], axis: int, sizes: Sizes, env: ShapeEnv) -> Sizes:
    """Eager joins along the dimension that the new one precedes and splits that, or else appends one to each tensor."""
    first = tensors[0]
    if channels_last_order(first.rank + (axis == first.rank)) is None:
        return contiguous_strides(sizes)
    if axis < first.rank:
        length = first.sizes[axis]
        merged = (*first.sizes[:axis], len(tensors) * length, *first.sizes[axis + 1 :])
        strides = joined_strides(tensors, merged, env)
        if strides == contiguous_strides(merged) or any_zero(sizes):
            return contiguous_strides(sizes)
        return (*strides[:axis], strides[axis] * length, *strides[axis:])
    grown = [replace(t, sizes=(*t.sizes, 1), strides=(*t.strides, 1)) for t in tensors]
    return joined_strides(grown, sizes, env)


@decomposes("aten.stack.default", rule=_stack_spec)
def stack(tensors: Sequence[PrimTensor], dim: int = 0) -> PrimTensor:
    first = tensors[0]
    if not all(same_sizes(t.sizes, first.sizes, current_trace().env) for t in tensors):
        raise RuleMismatchError("stack needs tensors of one shape")
    dtype = promotion.result_type(tensors)
    axis = canonical_dim(dim, first.rank + 1)
    sizes = (*first.sizes[:axis], 1, *first.sizes[axis:])
    kept = tuple(d for d in range(first.rank + 1) if d != axis)
    rows = [ops.broadcast_in_dim(ops.convert_dtype(t, dtype), sizes, kept) for t in tensors]
    return rows[0] if len(rows) == 1 else ops.cat(rows, axis)


def _pad_spec(x: TensorSpec, pad: Sequence[IntLike], value: Any = 0, *, env: ShapeEnv) -> TensorSpec:
    if len(pad) % 2 or len(pad) > 2 * x.rank:
        raise RuleMismatchError("padding comes in pairs, at most one for each dimension")
    sizes = list(x.sizes)
    for place in range(len(pad) // 2):
        axis = x.rank - 1 - place
        widths = pad[2 * place], pad[2 * place + 1]
        kept = sum([width for width in widths if _cuts(width, env)], sizes[axis])
        sizes[axis] = sizes[axis] + widths[0] + widths[1]
        if below(kept, 0, env) or below(sizes[axis], 0, env):  # eager cuts off before it adds
            raise RuleMismatchError("padding makes a size negative")
    if all(isinstance(width, int) and width <= 0 for width in pad):  # eager copies what is left
        strides = preserved_strides(tuple(sizes), x.strides, env)
        return TensorSpec(tuple(sizes), strides, x.dtype, x.device)
    return TensorSpec(tuple(sizes), joined_strides([x], tuple(sizes), env), x.dtype, x.device)


@decomposes("aten.constant_pad_nd.default", rule=_pad_spec)
def constant_pad_nd(x: PrimTensor, pad: Sequence[IntLike], value: Any = 0) -> PrimTensor:
    """Negative widths cut off."""
    env = current_trace().env
    low: list[IntLike] = [0] * x.rank
    high: list[IntLike] = [0] * x.rank
    for place in range(len(pad) // 2):
        axis = x.rank - 1 - place
        before, after = pad[2 * place], pad[2 * place + 1]
        cuts_off = _cuts(after, env)
        start = -before if _cuts(before, env) else 0
        end = x.sizes[axis] + after if cuts_off else x.sizes[axis]
        if not (isinstance(start, int) and start == 0 and end is x.sizes[axis]):
            x = cut(x, axis, start, end, 1, end - start)
        low[axis] = before if isinstance(start, int) and start == 0 else 0
        high[axis] = 0 if cuts_off else after
    if all(isinstance(n, int) and n == 0 for n in (*low, *high)):
        return ops.clone(x)
    return ops.pad(x, low, high, promotion.cast_number(value, x.dtype))


def _cuts(width: IntLike, env: ShapeEnv) -> bool:
    """Whether a width cuts off. One that is surely not positive does, be it 0: nothing is to be found out about it."""
    if isinstance(width, int):
        return width < 0
    return env.known(Relation("<=", width, 0)) is True or below(width, 0, env)


def _like_spec(x: TensorSpec, *args: Any, env: ShapeEnv, **kwargs: Any) -> TensorSpec:
    return TensorSpec(x.sizes, preserved_strides(x.sizes, x.strides, env), x.dtype, x.device)


@decomposes("aten.flip.default", rule=_like_spec)
def flip(x: PrimTensor, dims: Sequence[int]) -> PrimTensor:
    axes = canonical_dims(dims, x.rank, empty_is_all=False)
    return ops.flip(x, axes) if axes else ops.clone(x)


def _roll_spec(x: TensorSpec, shifts: Any, dims: Any = (), *, env: ShapeEnv) -> TensorSpec:
    moves, axes = ([v] if isinstance(v, int) else list(v) for v in (shifts, dims))
    if len(moves) != len(axes) and (axes or len(moves) != 1):
        raise RuleMismatchError("roll needs a shift for each dimension")
    for axis in axes:
        canonical_dim(axis, x.rank)
    if any_zero(x.sizes):
        return TensorSpec(x.sizes, preserved_strides(x.sizes, x.strides, env), x.dtype, x.device)
    return TensorSpec(x.sizes, contiguous_strides(x.sizes), x.dtype, x.device)


@decomposes("aten.roll.default", rule=_roll_spec)
def roll(x: PrimTensor, shifts: int | Sequence[int], dims: int | Sequence[int] = ()) -> PrimTensor:
    moves = [shifts] if isinstance(shifts, int) else list(shifts)
    axes = [dims] if isinstance(dims, int) else list(dims)
    if not axes:
        flat = ops.reshape(x, (x.numel,))
        return ops.reshape(rolled(flat, moves[0], 0), x.sizes)
    for shift, axis in zip(moves, axes, strict=True):
        x = rolled(x, shift, canonical_dim(axis, x.rank))
    return x


def rolled(x: PrimTensor, shift: IntLike, axis: int) -> PrimTensor:
    """``x`` turned round along ``axis`` by ``shift`` places."""
    size = x.sizes[axis]
    if isinstance(size, int) and size == 0:
        return ops.clone(x)
    env = current_trace().env
    turn = shift + size if below(shift, 0, env) else shift
    if below(turn, 0, env) or not below(turn, size, env):
        turn = mod(shift, size)
    if same(turn, 0, env):
        return ops.clone(x)
    head = cut(x, axis, size - turn, size, 1, turn)
    tail = cut(x, axis, 0, size - turn, 1, size - turn)
    return ops.cat((head, tail), axis)


def _repeat_spec(x: TensorSpec, repeats: Sequence[IntLike], *, env: ShapeEnv) -> TensorSpec:
    if len(repeats) < x.rank:
        raise RuleMismatchError("repeat needs a number for every dimension")
    whole = (*(1,) * (len(repeats) - x.rank), *x.sizes)
    sizes = tuple(copies * size for copies, size in zip(repeats, whole, strict=True))
    return TensorSpec(sizes, contiguous_strides(sizes), x.dtype, x.device)


@decomposes("aten.repeat.default", rule=_repeat_spec)
def repeat(x: PrimTensor, repeats: Sequence[IntLike]) -> PrimTensor:
    """Each dimension gets an outer one of its number of copies, and both are merged."""
    extra = len(repeats) - x.rank
    sizes = (*(1,) * extra, *x.sizes)
    spread: list[IntLike] = []
    for copies, size in zip(repeats, sizes, strict=True):
        spread += [copies, size]
    dims = tuple(2 * (axis + extra) + 1 for axis in range(x.rank))
    copied = ops.broadcast_in_dim(x, tuple(spread), dims)
    merged = tuple(copies * size for copies, size in zip(repeats, sizes, strict=True))
    return ops.reshape(copied, merged)


def _triangle_spec(x: TensorSpec, diagonal: int = 0, *, env: ShapeEnv) -> TensorSpec:
    if x.rank < 2:
        raise RuleMismatchError("a triangle needs two dimensions")
    return TensorSpec(x.sizes, contiguous_strides(x.sizes), x.dtype, x.device)


def _below_diagonal(x: PrimTensor, diagonal: int) -> PrimTensor:
    """Where column - row <= ``diagonal``."""
    rows, columns = x.rank - 2, x.rank - 1
    row = ops.iota(x.sizes[rows], diagonal, 1, torch.int64, x.device)
    column = ops.iota(x.sizes[columns], 0, 1, torch.int64, x.device)
    return ops.le(
        ops.broadcast_in_dim(column, x.sizes, (columns,)), ops.broadcast_in_dim(row, x.sizes, (rows,))
    )


@decomposes("aten.tril.default", rule=_triangle_spec)
def tril(x: PrimTensor, diagonal: int = 0) -> PrimTensor:
    return ops.where(_below_diagonal(x, diagonal), x, promotion.cast_number(0, x.dtype))


@decomposes("aten.triu.default", rule=_triangle_spec)
def triu(x: PrimTensor, diagonal: int = 0) -> PrimTensor:
    return ops.where(_below_diagonal(x, diagonal - 1), promotion.cast_number(0, x.dtype), x)
