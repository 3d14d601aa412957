"""Pointwise operators of three operands: selection, fused multiply-adds, interpolation, clamping."""

from __future__ import annotations

from typing import Any

import torch

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps import promotion
from primtorch_decomps.pointwise import Kind, common_device, move_scalar, pointwise, pointwise_spec
from primtorch_decomps.prims import PrimTensor, broadcast_to, current_trace, ops
from primtorch_decomps.registry import decomposes
from primtorch_decomps.shapes import broadcast


def _where_spec(condition: TensorSpec, x: Any, y: Any, *, env: ShapeEnv) -> TensorSpec:
    branches = [b for b in (x, y) if isinstance(b, TensorSpec)]
    numbers = [b for b in (x, y) if not isinstance(b, TensorSpec)]
    dtype = promotion.result_type(branches, numbers)
    return pointwise_spec([condition, *branches], dtype, env, numbers=bool(numbers))


@decomposes(
    "aten.where.self",
    "aten.where.ScalarSelf",
    "aten.where.ScalarOther",
    "aten.where.Scalar",
    rule=_where_spec,
)
def where(condition: PrimTensor, x: Any, y: Any) -> PrimTensor:
    tensors = [t for t in (condition, x, y) if isinstance(t, PrimTensor)]
    branches = tensors[1:]
    dtype = promotion.result_type(branches, [b for b in (x, y) if not isinstance(b, PrimTensor)])
    sizes = broadcast([t.sizes for t in tensors], current_trace().env)
    device = common_device(tensors)

    def ready(operand: Any) -> Any:
        if isinstance(operand, PrimTensor):
            return broadcast_to(ops.convert_dtype(move_scalar(operand, device), dtype), sizes)
        return promotion.cast_number(operand, dtype)

    picks = move_scalar(condition, device)
    picks = picks if picks.dtype is torch.bool else ops.ne(picks, 0)
    first, second = ready(x), ready(y)
    if not branches:
        first = ops.full(sizes, first, dtype, device)
    return ops.where(broadcast_to(picks, sizes), first, second)


def _masked_fill_spec(x: TensorSpec, mask: TensorSpec, value: Any, *, env: ShapeEnv) -> TensorSpec:
    sizes = broadcast([x.sizes, mask.sizes], env)  # eager copies into a row-major tensor first
    return TensorSpec(sizes, contiguous_strides(sizes), x.dtype, x.device)


@decomposes("aten.masked_fill.Scalar", "aten.masked_fill.Tensor", rule=_masked_fill_spec)
def masked_fill(x: PrimTensor, mask: PrimTensor, value: Any) -> PrimTensor:
    sizes = broadcast([x.sizes, mask.sizes], current_trace().env)
    if isinstance(value, PrimTensor):
        filling: Any = broadcast_to(ops.convert_dtype(move_scalar(value, x.device), x.dtype), sizes)
    else:
        filling = promotion.cast_number(value, x.dtype)
    return ops.where(broadcast_to(mask, sizes), filling, broadcast_to(x, sizes))


@pointwise("aten.addcmul.default", operands=3)
def addcmul(x: PrimTensor, y: PrimTensor, z: PrimTensor, value: Any = 1) -> PrimTensor:
    return x + (y * z if value == 1 else y * promotion.cast_number(value, x.dtype) * z)


@pointwise("aten.addcdiv.default", operands=3)
def addcdiv(x: PrimTensor, y: PrimTensor, z: PrimTensor, value: Any = 1) -> PrimTensor:
    return x + (y / z if value == 1 else y * value / z)


@pointwise("aten.lerp.Tensor", operands=3)
def lerp(start: PrimTensor, end: PrimTensor, weight: PrimTensor) -> PrimTensor:
    """From the nearer end, so that weights 0 and 1 are exact."""
    step = end - start
    near_end = end - step * (1.0 - weight)
    return ops.where(ops.lt(ops.abs(weight), 0.5), start + weight * step, near_end)


@pointwise("aten.lerp.Scalar", operands=2)
def lerp_scalar(start: PrimTensor, end: PrimTensor, weight: float) -> PrimTensor:
    weight, step = promotion.constant(weight), end - start
    return start + weight * step if -0.5 < weight < 0.5 else end - step * (1.0 - weight)


def _at_least(x: PrimTensor, bound: Any) -> PrimTensor:
    """Of zeros of both signs eager takes the bound if it is a tensor, and ``x`` if it is a number: the second here."""
    return ops.maximum(x, bound) if isinstance(bound, PrimTensor) else ops.maximum(bound, x)


def _at_most(x: PrimTensor, bound: Any) -> PrimTensor:
    return ops.minimum(x, bound) if isinstance(bound, PrimTensor) else ops.minimum(bound, x)


@pointwise("aten.clamp.default", "aten.clamp.Tensor", kind=Kind.EXACT, operands=3)
def clamp(x: PrimTensor, min: Any = None, max: Any = None) -> PrimTensor:
    """NaN stays NaN; where the bounds cross, the upper one wins."""
    if min is not None:
        x = _at_least(x, min)
    return x if max is None else _at_most(x, max)


@pointwise("aten.clamp_min.default", "aten.clamp_min.Tensor", kind=Kind.EXACT, operands=2)
def clamp_min(x: PrimTensor, min: Any) -> PrimTensor:
    return _at_least(x, min)


@pointwise("aten.clamp_max.default", "aten.clamp_max.Tensor", kind=Kind.EXACT, operands=2)
def clamp_max(x: PrimTensor, max: Any) -> PrimTensor:
    return _at_most(x, max)
