"""Softmax and its logarithm, with their gradients: maximum subtracted, half types accumulated in float32."""

from __future__ import annotations

import math

import torch

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.prims import PrimTensor, keep_dims, ops
from primtorch_decomps.promotion import compute_dtype
from primtorch_decomps.registry import decomposes
from primtorch_decomps.shapes import canonical_dim, required
from primtorch_decomps.strides import any_zero


def _shifted(x: PrimTensor, dim: int) -> PrimTensor:
    return x - keep_dims(ops.amax(x, (dim,)), (dim,), x.rank)


def _total(x: PrimTensor, dim: int) -> PrimTensor:
    return keep_dims(ops.sum(x, (dim,)), (dim,), x.rank)


def _with_dimension(x: PrimTensor) -> PrimTensor:
    return x if x.rank else ops.reshape(x, (1,))


def _result_dtype(x: PrimTensor, half_to_float: bool) -> torch.dtype:
    return torch.float32 if half_to_float else x.dtype


def _forward_spec(x: TensorSpec, dim: int, half_to_float: bool, *, env: ShapeEnv) -> TensorSpec:
    canonical_dim(dim, x.rank)
    if half_to_float and x.dtype is not torch.float16:
        raise RuleMismatchError("half_to_float of another dtype")
    dtype = torch.float32 if half_to_float else x.dtype
    return TensorSpec(x.sizes, contiguous_strides(x.sizes), dtype, x.device)


def _backward_spec(
    grad: TensorSpec, output: TensorSpec, dim: int, input_dtype: torch.dtype, *, env: ShapeEnv
) -> TensorSpec:
    canonical_dim(dim, grad.rank)
    if grad.rank != output.rank or not all(
        required(one, other, env) for one, other in zip(grad.sizes, output.sizes, strict=True)
    ):
        raise RuleMismatchError("a gradient of other sizes than the result")
    return TensorSpec(grad.sizes, contiguous_strides(grad.sizes), input_dtype, grad.device)


@decomposes("aten._softmax.default", rule=_forward_spec)
def softmax(x: PrimTensor, dim: int, half_to_float: bool) -> PrimTensor:
    axis = canonical_dim(dim, x.rank)
    if any_zero(x.sizes):
        return ops.full(x.sizes, 0.0, _result_dtype(x, half_to_float), x.device)
    powers = ops.exp(_shifted(_with_dimension(ops.convert_dtype(x, compute_dtype(x.dtype))), axis))
    return ops.convert_dtype(
        ops.reshape(powers / _total(powers, axis), x.sizes), _result_dtype(x, half_to_float)
    )


def _safe_spec(x: TensorSpec, dim: int, dtype: torch.dtype | None = None, *, env: ShapeEnv) -> TensorSpec:
    canonical_dim(dim, x.rank)
    return TensorSpec(x.sizes, contiguous_strides(x.sizes), dtype or x.dtype, x.device)


@decomposes("aten._safe_softmax.default", rule=_safe_spec)
def safe_softmax(x: PrimTensor, dim: int, dtype: torch.dtype | None = None) -> PrimTensor:
    """Softmax whose rows of nothing but -inf give zeros."""
    axis = canonical_dim(dim, x.rank)
    dtype = dtype or x.dtype
    if any_zero(x.sizes):
        return ops.full(x.sizes, 0.0, dtype, x.device)
    wide = _with_dimension(ops.convert_dtype(ops.convert_dtype(x, dtype), compute_dtype(dtype)))
    top = keep_dims(ops.amax(wide, (axis,)), (axis,), wide.rank)
    powers = ops.exp(wide - top)
    share = powers / _total(powers, axis)
    masked = ops.where(_spread(ops.eq(top, -math.inf), share), 0.0, share)
    return ops.convert_dtype(ops.reshape(masked, x.sizes), dtype)


def _spread(x: PrimTensor, like: PrimTensor) -> PrimTensor:
    return ops.broadcast_in_dim(x, like.sizes, tuple(range(like.rank)))


@decomposes("aten._log_softmax.default", rule=_forward_spec)
def log_softmax(x: PrimTensor, dim: int, half_to_float: bool) -> PrimTensor:
    axis = canonical_dim(dim, x.rank)
    if any_zero(x.sizes):
        return ops.full(x.sizes, 0.0, _result_dtype(x, half_to_float), x.device)
    shifted = _shifted(_with_dimension(ops.convert_dtype(x, compute_dtype(x.dtype))), axis)
    result = shifted - ops.log(_total(ops.exp(shifted), axis))
    return ops.convert_dtype(ops.reshape(result, x.sizes), _result_dtype(x, half_to_float))


@decomposes("aten._softmax_backward_data.default", rule=_backward_spec)
def softmax_backward(grad: PrimTensor, output: PrimTensor, dim: int, input_dtype: torch.dtype) -> PrimTensor:
    axis = canonical_dim(dim, grad.rank)
    compute = compute_dtype(grad.dtype)
    share = _with_dimension(ops.convert_dtype(output, compute))
    weighted = _with_dimension(ops.convert_dtype(grad, compute)) * share
    result = weighted - share * _total(weighted, axis)
    return ops.convert_dtype(ops.reshape(result, grad.sizes), input_dtype)


@decomposes("aten._log_softmax_backward_data.default", rule=_backward_spec)
def log_softmax_backward(
    grad: PrimTensor, output: PrimTensor, dim: int, input_dtype: torch.dtype
) -> PrimTensor:
    axis = canonical_dim(dim, grad.rank)
    compute = compute_dtype(grad.dtype)
    slope = _with_dimension(ops.convert_dtype(grad, compute))
    share = ops.exp(_with_dimension(ops.convert_dtype(output, compute)))
    result = slope - share * _total(slope, axis)
    return ops.convert_dtype(ops.reshape(result, grad.sizes), input_dtype)
