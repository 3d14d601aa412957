"""Gradients of activation functions, as autograd's formulas call them.

What NaN makes of a comparison decides whether it is let through. Where eager's kernels disagree about that, in vectors
and in the elements after the last whole vector, these formulas do what the vectors do.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps import promotion
from primtorch_decomps.decomps.arithmetic.unary import logit_bounds
from primtorch_decomps.decomps.neural_networks.activations import (
    SQRT_HALF,
    TANH_CUBIC,
    TANH_SCALE,
    as_compared,
    halves,
)
from primtorch_decomps.decomps.neural_networks.normalization import wide
from primtorch_decomps.pointwise import (
    Kind,
    as_first,
    decomposition_of,
    pointwise,
    pointwise_rule,
    pointwise_spec,
    second_first,
)
from primtorch_decomps.prims import PrimTensor, broadcast_all, ops
from primtorch_decomps.registry import decomposes
from primtorch_decomps.rules.images.pooling import suggested_strides
from primtorch_decomps.shapes import Sizes, canonical_dim
from primtorch_decomps.strides import pointwise_strides

_DENSITY_SCALE = 1.0 / math.sqrt(2.0 * math.pi)


@pointwise("aten.threshold_backward.default", kind=Kind.EXACT, operands=2, layout=second_first)
def threshold_backward(grad: PrimTensor, x: PrimTensor, threshold: Any) -> PrimTensor:
    zero = 0.0 if grad.dtype.is_floating_point else 0
    return ops.where(ops.le(as_compared(x), threshold), zero, grad)


@pointwise("aten.sigmoid_backward.default", operands=2)
def sigmoid_backward(grad: PrimTensor, y: PrimTensor) -> PrimTensor:
    return grad * ((1.0 - y) * y)


@pointwise("aten.tanh_backward.default", operands=2)
def tanh_backward(grad: PrimTensor, y: PrimTensor) -> PrimTensor:
    return grad * (1.0 - y * y)


@pointwise("aten.silu_backward.default", operands=2)
def silu_backward(grad: PrimTensor, x: PrimTensor) -> PrimTensor:
    gate = ops.sigmoid(x)
    return grad * gate * (1.0 + x * (1.0 - gate))


@pointwise("aten.gelu_backward.default", operands=2)
def gelu_backward(grad: PrimTensor, x: PrimTensor, approximate: str = "none") -> PrimTensor:
    if approximate == "tanh":
        return grad * _gelu_tanh_slope(x)
    area = 0.5 * (1.0 + ops.erf(x * SQRT_HALF))
    density = ops.exp(x * x * -0.5) * _DENSITY_SCALE
    return grad * (area + x * density)


def _gelu_tanh_slope(x: PrimTensor) -> PrimTensor:
    square = x * x
    bend = ops.tanh(TANH_SCALE * (x + TANH_CUBIC * (square * x)))
    inner_slope = TANH_SCALE * (1.0 + 3.0 * TANH_CUBIC * square)
    return 0.5 * (1.0 + bend) + 0.5 * x * ((1.0 - bend * bend) * inner_slope)


def _glu_backward_spec(grad: TensorSpec, x: TensorSpec, dim: int, *, env: ShapeEnv) -> TensorSpec:
    canonical_dim(dim, x.rank)
    return TensorSpec(x.sizes, contiguous_strides(x.sizes), x.dtype, x.device)


@decomposes("aten.glu_backward.default", rule=_glu_backward_spec)
def glu_backward(grad: PrimTensor, x: PrimTensor, dim: int) -> PrimTensor:
    wide = promotion.compute_dtype(x.dtype)
    value, gate = (ops.convert_dtype(half, wide) for half in halves(x, dim))
    slope, share = ops.convert_dtype(grad, wide), ops.sigmoid(gate)
    inner = slope * share
    parts = (inner, inner * (1.0 - share) * value)
    return ops.convert_dtype(ops.cat(parts, canonical_dim(dim, x.rank)), x.dtype)


def _suggested_on_a_gpu(tensors: Sequence[TensorSpec], sizes: Sizes, env: ShapeEnv) -> Sizes:
    """Where the kernel of a GPU makes its result in the memory format that the gradient suggests."""
    if tensors[0].device.type == "cpu":
        return pointwise_strides(tensors, sizes, env)
    return suggested_strides(sizes, tensors[0], env)


@pointwise("aten.native_dropout_backward.default", kind=Kind.FLOAT, layout=_suggested_on_a_gpu)
def native_dropout_backward(grad: PrimTensor, mask: PrimTensor, scale: float) -> PrimTensor:
    return grad * mask * scale


@pointwise("aten.leaky_relu_backward.default", operands=2, layout=second_first)
def leaky_relu_backward(
    grad: PrimTensor, x: PrimTensor, negative_slope: float, self_is_result: bool
) -> PrimTensor:
    return ops.where(ops.gt(x, 0.0), grad, grad * negative_slope)


@pointwise("aten.elu_backward.default")
def elu_backward(
    grad: PrimTensor, alpha: float, scale: float, input_scale: float, is_result: bool, x: PrimTensor
) -> PrimTensor:
    """``x`` is the function's result where ``is_result``, else its argument."""
    alpha, scale, input_scale = map(promotion.constant, (alpha, scale, input_scale))
    if is_result:
        negative = grad * input_scale * (x + alpha * scale)
    else:
        negative = grad * (input_scale * alpha * scale) * ops.exp(x * input_scale)
    return ops.where(ops.gt(x, 0.0), grad * scale, negative)


@pointwise("aten.hardtanh_backward.default", operands=2)
def hardtanh_backward(grad: PrimTensor, x: PrimTensor, min_val: Any, max_val: Any) -> PrimTensor:
    return ops.where(ops.gt(x, min_val) & ops.lt(x, max_val), grad, 0.0)


_SIXTH = struct.unpack("f", struct.pack("f", 1 / 6))[0]
"""Eager's kernel holds it in float32, whatever it computes in."""


@pointwise("aten.hardsigmoid_backward.default", operands=2)
def hardsigmoid_backward(grad: PrimTensor, x: PrimTensor) -> PrimTensor:
    return ops.where(ops.gt(x, -3.0) & ops.lt(x, 3.0), grad * _SIXTH, 0.0)


@pointwise("aten.hardswish_backward.default", operands=2)
def hardswish_backward(grad: PrimTensor, x: PrimTensor) -> PrimTensor:
    inner = grad * (x / 3.0 + 0.5)
    return ops.where(ops.le(x, -3.0), 0.0, ops.where(ops.ge(x, 3.0), grad, inner))


@pointwise("aten.softplus_backward.default", operands=2)
def softplus_backward(grad: PrimTensor, x: PrimTensor, beta: float, threshold: float) -> PrimTensor:
    scaled = x * beta
    return ops.where(ops.gt(scaled, threshold), grad, grad * ops.sigmoid(scaled))


@pointwise("aten.mish_backward.default", operands=2)
def mish_backward(grad: PrimTensor, x: PrimTensor) -> PrimTensor:
    gate = ops.sigmoid(x)
    bend = ops.tanh(ops.log1p(ops.exp(-ops.abs(x))) + ops.maximum(x, 0.0))
    return grad * (bend + x * gate * (1.0 - bend * bend))


@pointwise("aten.hardshrink_backward.default", "aten.softshrink_backward.default", operands=2, stored=(2,))
def shrink_backward(grad: PrimTensor, x: PrimTensor, lambd: float) -> PrimTensor:
    return ops.where(ops.lt(x, -lambd) | ops.gt(x, lambd), grad, 0.0)


@decomposes("aten.logit_backward.default", rule=pointwise_rule(Kind.ARITHMETIC, 2))
def logit_backward(grad: PrimTensor, x: PrimTensor, eps: float | None = None) -> Any:
    if eps is None:
        return _slope_of_logit(grad, x)
    return _slope_of_bounded_logit(grad, x, *logit_bounds(x, eps))


def _logit_slope(grad: PrimTensor, x: PrimTensor) -> PrimTensor:
    outside = ops.lt(x, 0.0) | ops.gt(x, 1.0)
    return ops.where(outside, math.nan, grad / (x * (1.0 - x)))


def _bounded_logit_slope(grad: PrimTensor, x: PrimTensor, low: Any, high: Any) -> PrimTensor:
    return ops.where(ops.ge(x, low) & ops.le(x, high), grad / (x * (1.0 - x)), 0.0)


_slope_of_logit = decomposition_of(_logit_slope, Kind.ARITHMETIC, 2)
_slope_of_bounded_logit = decomposition_of(_bounded_logit_slope, Kind.ARITHMETIC, 4)


def _slope_of_log_sigmoid(grad: PrimTensor, x: PrimTensor) -> PrimTensor:
    return grad * ops.sigmoid(-x)


_log_sigmoid_rule = pointwise_rule(Kind.ARITHMETIC, 2, layout=as_first)
_log_sigmoid_formula = decomposition_of(_slope_of_log_sigmoid, Kind.ARITHMETIC, 2)


def _log_sigmoid_backward_spec(
    grad: TensorSpec, x: TensorSpec, buffer: TensorSpec, *, env: ShapeEnv
) -> TensorSpec:
    made: TensorSpec = _log_sigmoid_rule(grad, x, env=env)
    return made


@decomposes("aten.log_sigmoid_backward.default", rule=_log_sigmoid_backward_spec)
def log_sigmoid_backward(grad: PrimTensor, x: PrimTensor, buffer: PrimTensor) -> PrimTensor:
    """``buffer`` is no operand: what a CPU's kernel has computed before, and empty elsewhere."""
    made: PrimTensor = _log_sigmoid_formula(grad, x)
    return made


def _prelu_backward_spec(
    grad: TensorSpec, x: TensorSpec, weight: TensorSpec, *, env: ShapeEnv
) -> tuple[TensorSpec, TensorSpec]:
    spec = pointwise_spec([x, weight, grad], x.dtype, env)
    return spec, spec


@decomposes("aten._prelu_kernel_backward.default", rule=_prelu_backward_spec)
def prelu_backward(grad: PrimTensor, x: PrimTensor, weight: PrimTensor) -> tuple[PrimTensor, PrimTensor]:
    """Of the tensor, and of the weight at each element."""
    slope, data, steepness = broadcast_all(*(wide(t) for t in (grad, x, weight)))
    positive = ops.gt(data, 0.0)
    results = ops.where(positive, slope, steepness * slope), ops.where(positive, 0.0, data * slope)
    return ops.convert_dtype(results[0], x.dtype), ops.convert_dtype(results[1], x.dtype)
