"""Picking elements by index tensors, and the gradients of slices and selections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from fx_interface.symbols import IntLike, Relation, ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.prims import PrimTensor, broadcast_all, current_trace, ops
from primtorch_decomps.registry import decomposes
from primtorch_decomps.rules.data_movement.views import index_from_front
from primtorch_decomps.shapes import (
    broadcast,
    canonical_dim,
    has_empty_rows,
    required_within,
    slice_bounds,
)
from primtorch_decomps.strides import (
    HasLayout,
    Layout,
    broadcast_strides,
    overwritten_strides,
    pointwise_strides,
)

_MASKS = (torch.bool, torch.uint8)


def _index_spec(x: TensorSpec, indices: Sequence[TensorSpec | None], *, env: ShapeEnv) -> TensorSpec:
    """The layout is TensorIterator's over the input, with stride 0 where it is indexed, and the index tensors."""
    used = [axis for axis, item in enumerate(indices) if item is not None]
    tensors = [item for item in indices if item is not None]
    if not used or len(indices) > x.rank or any(t.dtype in _MASKS for t in tensors):
        raise RuleMismatchError("an index by masks, or by nothing")
    chosen = broadcast([t.sizes for t in tensors], env)
    adjacent = used[-1] - used[0] + 1 == len(used)
    place = used[0] if adjacent else 0
    rest = [axis for axis in range(x.rank) if axis not in used]
    before, after = rest[:place], rest[place:]
    sizes = (*(x.sizes[d] for d in before), *chosen, *(x.sizes[d] for d in after))
    if x.strides == contiguous_strides(x.sizes) and all(
        t.sizes == chosen and t.strides == contiguous_strides(chosen) for t in tensors
    ):  # then no operand asks for another order
        return TensorSpec(sizes, contiguous_strides(sizes), x.dtype, x.device)
    held = (*(x.strides[d] for d in before), *(0,) * len(chosen), *(x.strides[d] for d in after))
    ones, zeros = ((1,) * len(before), (1,) * len(after)), ((0,) * len(before), (0,) * len(after))
    operands: list[HasLayout] = [Layout(sizes, held)]
    for tensor in tensors:
        steps = tuple(broadcast_strides(tensor, chosen))
        operands.append(Layout((*ones[0], *chosen, *ones[1]), (*zeros[0], *steps, *zeros[1])))
    return TensorSpec(sizes, pointwise_strides(operands, sizes, env), x.dtype, x.device)


@decomposes("aten.index.Tensor", rule=_index_spec)
def index(x: PrimTensor, indices: Sequence[PrimTensor | None]) -> Any:
    tensors = [item for item in indices if item is not None]
    if not tensors or any(t.dtype in _MASKS for t in tensors):
        return NotImplemented
    same_type = [ops.convert_dtype(t, torch.int64) for t in tensors]
    spread = iter(broadcast_all(*same_type))
    return ops.index(x, tuple(None if item is None else next(spread) for item in indices))


def _gather_spec(
    x: TensorSpec, dim: int, index: TensorSpec, *, sparse_grad: bool = False, env: ShapeEnv
) -> TensorSpec:
    axis = canonical_dim(dim, x.rank)
    if x.rank != index.rank or not required_within(index.sizes, x.sizes, axis, env):
        raise RuleMismatchError(
            "gather needs an index of the input's rank, no longer than the input elsewhere"
        )
    return TensorSpec(index.sizes, contiguous_strides(index.sizes), x.dtype, x.device)


@decomposes("aten.gather.default", rule=_gather_spec)
def gather(x: PrimTensor, dim: int, index: PrimTensor, *, sparse_grad: bool = False) -> Any:
    if not x.rank:
        return NotImplemented
    return ops.gather(x, canonical_dim(dim, x.rank), index)


@decomposes("aten.index_select.default")
def index_select(x: PrimTensor, dim: int, index: PrimTensor) -> Any:
    if index.rank > 1:
        return NotImplemented
    picks = index if index.rank else ops.reshape(index, (1,))
    axis = canonical_dim(dim, x.rank)
    if has_empty_rows(x.sizes, axis):
        return NotImplemented
    if x.rank:
        return ops.index(x, (*(None,) * axis, picks), wraps=False)
    if not current_trace().env.expect(Relation("==", picks.sizes[0], 1)):
        return NotImplemented  # which raises
    return ops.reshape(ops.index(ops.reshape(x, (1,)), (ops.reshape(picks, (1,)),), wraps=False), ())


def _scattered(grad: PrimTensor, axis: int, low: IntLike, high: IntLike) -> PrimTensor:
    before: list[IntLike] = [0] * grad.rank
    after: list[IntLike] = [0] * grad.rank
    before[axis], after[axis] = low, high
    zero = 0.0 if grad.dtype.is_floating_point else 0
    return ops.pad(grad, before, after, zero)


@decomposes("aten.select_backward.default")
def select_backward(grad: PrimTensor, input_sizes: Sequence[IntLike], dim: int, index: IntLike) -> PrimTensor:
    rank = len(input_sizes)
    axis = canonical_dim(dim, rank)
    size = input_sizes[axis]
    place = index_from_front(index, size, current_trace().env)
    flat = ops.broadcast_in_dim(
        grad, (*grad.sizes[:axis], 1, *grad.sizes[axis:]), tuple(d for d in range(rank) if d != axis)
    )
    return _scattered(flat, axis, place, size - place - 1)


@decomposes("aten.slice_backward.default")
def slice_backward(
    grad: PrimTensor, input_sizes: Sequence[IntLike], dim: int, start: IntLike, end: IntLike, step: IntLike
) -> PrimTensor:
    rank = len(input_sizes)
    axis = canonical_dim(dim, rank)
    low, _, length = slice_bounds(input_sizes[axis], start, end, step, current_trace().env)
    if step != 1:
        grad, length = _spread_out(grad, axis, length, step)
    return _scattered(grad, axis, low, input_sizes[axis] - low - length)


def _spread_out(grad: PrimTensor, axis: int, length: IntLike, step: IntLike) -> tuple[PrimTensor, IntLike]:
    """The gradient with ``step - 1`` zeros between its elements, ending with an element."""
    if isinstance(length, int) and length == 0:
        return grad, 0
    columns = ops.reshape(grad, (*grad.sizes[: axis + 1], 1, *grad.sizes[axis + 1 :]))
    wide = _scattered(columns, axis + 1, 0, step - 1)
    total = length * step
    merged = ops.reshape(wide, (*grad.sizes[:axis], total, *grad.sizes[axis + 1 :]))
    used = total - (step - 1)
    limits = (*merged.sizes[:axis], used, *merged.sizes[axis + 1 :])
    return ops.slice(merged, (0,) * merged.rank, limits, (1,) * merged.rank, limits), used


def overwritten_spec(x: TensorSpec, *args: Any, env: ShapeEnv, **kwargs: Any) -> TensorSpec:
    """A copy of the first tensor of which a part is replaced."""
    return TensorSpec(x.sizes, overwritten_strides(x.sizes, x.strides, env), x.dtype, x.device)


def fits(src: TensorSpec, place: Sequence[IntLike], env: ShapeEnv) -> bool:
    """Whether what is written has the sizes of where it goes; those from data are checked when they are known."""
    return src.rank == len(place) and all(
        one is other or env.expect(Relation("==", one, other))
        for one, other in zip(src.sizes, place, strict=True)
    )


def _slice_scatter_spec(
    x: TensorSpec,
    src: TensorSpec,
    dim: int = 0,
    start: IntLike | None = None,
    end: IntLike | None = None,
    step: IntLike = 1,
    *,
    env: ShapeEnv,
) -> TensorSpec:
    axis = canonical_dim(dim, x.rank)
    _, _, length = slice_bounds(x.sizes[axis], start, end, step, env)
    if not fits(src, (*x.sizes[:axis], length, *x.sizes[axis + 1 :]), env):
        raise RuleMismatchError("a slice of other sizes than what is written there")
    return overwritten_spec(x, env=env)


@decomposes("aten.slice_scatter.default", rule=_slice_scatter_spec)
def slice_scatter(
    x: PrimTensor,
    src: PrimTensor,
    dim: int = 0,
    start: IntLike | None = None,
    end: IntLike | None = None,
    step: IntLike = 1,
) -> Any:
    """Pads both the source and a mask of it out to the whole, and picks."""
    axis = canonical_dim(dim, x.rank)
    low, _, length = slice_bounds(x.sizes[axis], start, end, step, current_trace().env)
    places = ops.iota(x.sizes[axis], 0, 1, torch.int64, x.device)
    last = low + (length - 1) * step
    inside = ops.ge(places, low) & ops.le(places, last)
    if step != 1:
        inside = inside & ops.eq(ops.remainder(places - low, step), 0)
    wide = slice_backward(ops.convert_dtype(src, x.dtype), x.sizes, axis, low, last + 1, step)
    return ops.where(ops.broadcast_in_dim(inside, x.sizes, (axis,)), wide, x)


def _select_scatter_spec(
    x: TensorSpec, src: TensorSpec, dim: int, index: IntLike, *, env: ShapeEnv
) -> TensorSpec:
    axis = canonical_dim(dim, x.rank)
    if not fits(src, (*x.sizes[:axis], *x.sizes[axis + 1 :]), env):
        raise RuleMismatchError("a part of other sizes than what is written there")
    return overwritten_spec(x, env=env)


@decomposes("aten.select_scatter.default", rule=_select_scatter_spec)
def select_scatter(x: PrimTensor, src: PrimTensor, dim: int, index: IntLike) -> PrimTensor:
    axis = canonical_dim(dim, x.rank)
    place = index_from_front(index, x.sizes[axis], current_trace().env)
    places = ops.broadcast_in_dim(ops.iota(x.sizes[axis], 0, 1, torch.int64, x.device), x.sizes, (axis,))
    kept = tuple(d for d in range(x.rank) if d != axis)
    spread = ops.broadcast_in_dim(ops.convert_dtype(src, x.dtype), x.sizes, kept)
    return ops.where(ops.eq(places, place), spread, x)
