"""Activation functions."""

from __future__ import annotations

import math
from typing import Any

from fx_interface.symbols import ShapeEnv, floordiv, mod
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps import promotion
from primtorch_decomps.decomps.data_movement.views import cut
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.pointwise import Kind, as_first, pointwise, pointwise_spec
from primtorch_decomps.prims import PrimTensor, current_trace, ops
from primtorch_decomps.registry import decomposes
from primtorch_decomps.shapes import canonical_dim, same
from primtorch_decomps.strides import pointwise_strides

SQRT_HALF = math.sqrt(0.5)
TANH_SCALE = math.sqrt(2.0 / math.pi)
TANH_CUBIC = 0.044715
"""Constants of the two forms of GELU (Hendrycks and Gimpel, arXiv:1606.08415)."""


@pointwise("aten.relu.default", kind=Kind.EXACT)
def relu(x: PrimTensor) -> PrimTensor:
    return ops.maximum(promotion.cast_number(0, x.dtype), x)


@pointwise("aten.relu6.default", kind=Kind.EXACT)
def relu6(x: PrimTensor) -> PrimTensor:
    return hardtanh(x, 0.0, 6.0)


@pointwise("aten.hardtanh.default", kind=Kind.EXACT, layout=as_first)
def hardtanh(x: PrimTensor, min_val: Any = -1.0, max_val: Any = 1.0) -> PrimTensor:
    low, high = promotion.cast_number(min_val, x.dtype), promotion.cast_number(max_val, x.dtype)
    return ops.minimum(high, ops.maximum(low, x))


@pointwise("aten.silu.default")
def silu(x: PrimTensor) -> PrimTensor:
    return x * ops.sigmoid(x)


@pointwise("aten.gelu.default")
def gelu(x: PrimTensor, approximate: str = "none") -> PrimTensor:
    if approximate == "tanh":
        return 0.5 * x * (1.0 + ops.tanh(TANH_SCALE * (x + TANH_CUBIC * (x * x * x))))
    return x * 0.5 * (1.0 + ops.erf(x * SQRT_HALF))


@pointwise("aten.leaky_relu.default")
def leaky_relu(x: PrimTensor, negative_slope: float = 0.01) -> PrimTensor:
    return ops.where(ops.gt(x, 0.0), x, x * negative_slope)


@pointwise("aten.elu.default")
def elu(x: PrimTensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> PrimTensor:
    below = promotion.constant(alpha) * promotion.constant(scale)
    return ops.where(ops.le(x, 0.0), ops.expm1(x * input_scale) * below, x * scale)


@pointwise("aten.celu.default")
def celu(x: PrimTensor, alpha: float = 1.0) -> PrimTensor:
    return elu(x, alpha, 1.0, 1.0 / promotion.constant(alpha))


@pointwise("aten.selu.default")
def selu(x: PrimTensor) -> PrimTensor:
    """Klambauer et al., arXiv:1706.02515."""
    return elu(x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


@pointwise("aten.softplus.default")
def softplus(x: PrimTensor, beta: float = 1.0, threshold: float = 20.0) -> PrimTensor:
    scaled = x * beta
    return ops.where(ops.gt(scaled, threshold), x, ops.log1p(ops.exp(scaled)) / beta)


@pointwise("aten.mish.default")
def mish(x: PrimTensor) -> PrimTensor:
    return x * ops.tanh(softplus(x))


@pointwise("aten.hardsigmoid.default")
def hardsigmoid(x: PrimTensor) -> PrimTensor:
    return ops.minimum(ops.maximum(x + 3.0, 0.0), 6.0) / 6.0


@pointwise("aten.hardswish.default")
def hardswish(x: PrimTensor) -> PrimTensor:
    return x * ops.minimum(ops.maximum(x + 3.0, 0.0), 6.0) / 6.0


@pointwise("aten.hardshrink.default", stored=(1,))
def hardshrink(x: PrimTensor, lambd: float = 0.5) -> PrimTensor:
    return ops.where(ops.ge(x, -lambd) & ops.le(x, lambd), 0.0, x)


@pointwise("aten.softshrink.default")
def softshrink(x: PrimTensor, lambd: float = 0.5) -> PrimTensor:
    return ops.where(ops.gt(x, lambd), x - lambd, ops.where(ops.lt(x, -lambd), x + lambd, x * 0.0))


@pointwise("aten.threshold.default", kind=Kind.EXACT)
def threshold(x: PrimTensor, threshold: Any, value: Any) -> PrimTensor:
    below = ops.le(as_compared(x), threshold)
    return ops.where(below, promotion.cast_number(value, x.dtype), x)


def as_compared(x: PrimTensor) -> PrimTensor:
    """``x`` as eager compares it with a threshold: on a CPU half types in float32, the threshold is not rounded."""
    return ops.convert_dtype(x, promotion.compute_dtype(x.dtype)) if x.device.type == "cpu" else x


@pointwise("aten._prelu_kernel.default", operands=2, layout=as_first)
def prelu(x: PrimTensor, weight: PrimTensor) -> PrimTensor:
    return ops.where(ops.gt(x, 0.0), x, weight * x)


def _glu_spec(x: TensorSpec, dim: int = -1, *, env: ShapeEnv) -> TensorSpec:
    """Pointwise over two halves of the input, which lie in memory as it does."""
    axis = canonical_dim(dim, x.rank)
    if not x.rank or not same(mod(x.sizes[axis], 2), 0, env):
        raise RuleMismatchError("glu needs an even size")
    sizes = (*x.sizes[:axis], floordiv(x.sizes[axis], 2), *x.sizes[axis + 1 :])
    half = TensorSpec(sizes, x.strides, x.dtype, x.device)
    return pointwise_spec([half, half], x.dtype, env)


@decomposes("aten.glu.default", rule=_glu_spec)
def glu(x: PrimTensor, dim: int = -1) -> PrimTensor:
    """The first half of ``dim``, gated by the second."""
    value, gate = halves(x, dim)
    wide = promotion.compute_dtype(x.dtype)
    result = ops.convert_dtype(value, wide) * ops.sigmoid(ops.convert_dtype(gate, wide))
    return ops.convert_dtype(result, x.dtype)


def halves(x: PrimTensor, dim: int) -> tuple[PrimTensor, PrimTensor]:
    """``x`` cut in two along ``dim``, whose size must be even."""
    axis = canonical_dim(dim, x.rank)
    size = x.sizes[axis]
    if not x.rank or not same(mod(size, 2), 0, current_trace().env):
        raise RuleMismatchError("halving an odd size")
    middle = floordiv(size, 2)
    return cut(x, axis, 0, middle, 1, middle), cut(x, axis, middle, size, 1, middle)


@pointwise("aten.log_sigmoid.default")
def log_sigmoid(x: PrimTensor) -> PrimTensor:
    return ops.minimum(x, 0.0) - ops.log1p(ops.exp(-ops.abs(x)))


def _log_sigmoid_spec(x: TensorSpec, *, env: ShapeEnv) -> tuple[TensorSpec, TensorSpec]:
    if x.device.type != "cpu":
        made = TensorSpec(x.sizes, pointwise_strides([x], x.sizes, env), x.dtype, x.device)
        return made, TensorSpec((0,), (1,), x.dtype, x.device)
    made = TensorSpec(x.sizes, contiguous_strides(x.sizes), x.dtype, x.device)
    return made, made


@decomposes("aten.log_sigmoid_forward.default", rule=_log_sigmoid_spec)
def log_sigmoid_forward(x: PrimTensor) -> tuple[PrimTensor, PrimTensor]:
    """On a CPU the second result is exp(-|x|), elsewhere it is empty."""
    source = ops.convert_dtype(x, promotion.compute_dtype(x.dtype))
    result = ops.convert_dtype(log_sigmoid(source), x.dtype)
    if x.device.type != "cpu":
        return result, ops.full((0,), 0.0, x.dtype, x.device)
    return result, ops.convert_dtype(ops.exp(-ops.abs(source)), x.dtype)
