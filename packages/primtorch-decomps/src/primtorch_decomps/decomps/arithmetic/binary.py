"""Pointwise operators of two operands with type promotion: arithmetic, division in its modes, powers, bits."""

from __future__ import annotations

import math
from typing import Any

import torch

from primtorch_decomps import promotion
from primtorch_decomps.decomps.arithmetic.division_modes import div_mode
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.pointwise import Kind, pointwise, pointwise_rule, row_major
from primtorch_decomps.prims import PrimTensor, ops
from primtorch_decomps.registry import decomposes


def _is_bool(x: Any, y: Any) -> bool:
    return all(not isinstance(v, PrimTensor) or v.dtype is torch.bool for v in (x, y))


def _scaled(x: Any, alpha: Any) -> Any:
    if not isinstance(alpha, PrimTensor) and isinstance(alpha, (int, float)) and alpha == 1:
        return x
    return x * (int(alpha) if isinstance(x, PrimTensor) and promotion.is_integral(x.dtype) else alpha)


@pointwise("aten.add.Tensor", "aten.add.Scalar", operands=2)
def add(x: Any, y: Any, alpha: Any = 1) -> PrimTensor:
    if _is_bool(x, y):
        return ops.bitwise_or(x, _scaled_bool(y, alpha))
    return ops.add(x, _scaled(y, alpha))


def _scaled_bool(y: Any, alpha: Any) -> Any:
    if alpha:
        return y
    return ops.bitwise_and(y, False) if isinstance(y, PrimTensor) else False


def _check_subtraction(x: Any, y: Any) -> None:
    if _is_bool(x, y):
        raise RuleMismatchError("subtraction of booleans")


@pointwise("aten.sub.Tensor", "aten.sub.Scalar", operands=2)
def sub(x: Any, y: Any, alpha: Any = 1) -> PrimTensor:
    _check_subtraction(x, y)
    return ops.sub(x, _scaled(y, alpha))


@pointwise("aten.rsub.Tensor", "aten.rsub.Scalar", operands=2)
def rsub(x: Any, y: Any, alpha: Any = 1) -> PrimTensor:
    _check_subtraction(x, y)
    return ops.sub(y, _scaled(x, alpha))


@pointwise("aten.mul.Tensor", "aten.mul.Scalar", operands=2)
def mul(x: Any, y: Any) -> PrimTensor:
    return ops.bitwise_and(x, y) if _is_bool(x, y) else ops.mul(x, y)


@pointwise("aten.div.Tensor", "aten.div.Scalar", "aten.true_divide.Tensor", kind=Kind.FLOAT, operands=2)
def div(x: Any, y: Any) -> PrimTensor:
    return ops.div(x, y)


@decomposes("aten.floor_divide.default", "aten.floor_divide.Scalar", rule=pointwise_rule(Kind.ARITHMETIC, 2))
def floor_divide(x: Any, y: Any) -> PrimTensor:
    return div_mode(x, y, rounding_mode="floor")


@pointwise("aten.fmod.Tensor", "aten.fmod.Scalar", operands=2, stored=(0, 1))
def fmod(x: Any, y: Any) -> PrimTensor:
    return ops.fmod(x, y)


@pointwise(
    "aten.remainder.Tensor",
    "aten.remainder.Scalar",
    "aten.remainder.Scalar_Tensor",
    operands=2,
    stored=(0, 1),
)
def remainder(x: Any, y: Any) -> PrimTensor:
    return ops.remainder(x, y)


@pointwise("aten.atan2.default", kind=Kind.FLOAT, operands=2)
def atan2(x: PrimTensor, y: PrimTensor) -> PrimTensor:
    return ops.atan2(x, y)


@pointwise("aten.maximum.default", kind=Kind.EXACT, operands=2)
def maximum(x: PrimTensor, y: PrimTensor) -> PrimTensor:
    return ops.maximum(x, y)


@pointwise("aten.minimum.default", kind=Kind.EXACT, operands=2)
def minimum(x: PrimTensor, y: PrimTensor) -> PrimTensor:
    return ops.minimum(x, y)


@pointwise("aten.fmax.default", kind=Kind.EXACT, operands=2)
def fmax(x: PrimTensor, y: PrimTensor) -> PrimTensor:
    if promotion.is_integral(x.dtype):
        return ops.maximum(x, y)
    return ops.where(ops.isnan(x), y, ops.where(ops.isnan(y), x, ops.maximum(y, x)))


@pointwise("aten.fmin.default", kind=Kind.EXACT, operands=2)
def fmin(x: PrimTensor, y: PrimTensor) -> PrimTensor:
    if promotion.is_integral(x.dtype):
        return ops.minimum(x, y)
    return ops.where(ops.isnan(x), y, ops.where(ops.isnan(y), x, ops.minimum(y, x)))


@pointwise("aten.hypot.default", operands=2)
def hypot(x: PrimTensor, y: PrimTensor) -> PrimTensor:
    large = ops.maximum(ops.abs(x), ops.abs(y))
    small = ops.minimum(ops.abs(x), ops.abs(y))
    ratio = small / large
    plain = large * ops.sqrt(1.0 + ratio * ratio)
    finite = ops.where(ops.eq(large, 0.0), large, plain)
    return ops.where(ops.isinf(x) | ops.isinf(y), math.inf, finite)  # with NaN beside it too


@pointwise("aten.logaddexp.default", operands=2)
def logaddexp(x: PrimTensor, y: PrimTensor) -> PrimTensor:
    high, low = ops.maximum(x, y), ops.minimum(x, y)
    return ops.where(ops.isinf(x) & ops.eq(x, y), x, high + ops.log1p(ops.exp(low - high)))


@pointwise("aten.xlogy.Tensor", kind=Kind.FLOAT, operands=2)
def xlogy(x: Any, y: Any) -> PrimTensor:
    zero = ops.where(ops.isnan(y), y, 0.0)
    return ops.where(ops.eq(x, 0.0), zero, x * ops.log(y))


@pointwise("aten.heaviside.default", kind=Kind.EXACT, operands=2)
def heaviside(x: PrimTensor, y: PrimTensor) -> PrimTensor:
    positive = ops.convert_dtype(ops.gt(x, promotion.cast_number(0, x.dtype)), x.dtype)
    return ops.where(ops.eq(x, promotion.cast_number(0, x.dtype)), y, positive)


@pointwise("aten.bitwise_and.Tensor", "aten.bitwise_and.Scalar", kind=Kind.EXACT, operands=2)
def bitwise_and(x: Any, y: Any) -> PrimTensor:
    return ops.bitwise_and(x, y)


@pointwise("aten.bitwise_or.Tensor", "aten.bitwise_or.Scalar", kind=Kind.EXACT, operands=2)
def bitwise_or(x: Any, y: Any) -> PrimTensor:
    return ops.bitwise_or(x, y)


@pointwise("aten.bitwise_xor.Tensor", "aten.bitwise_xor.Scalar", kind=Kind.EXACT, operands=2)
def bitwise_xor(x: Any, y: Any) -> PrimTensor:
    return ops.bitwise_xor(x, y)


@pointwise(
    "aten.bitwise_left_shift.Tensor",
    "aten.bitwise_left_shift.Tensor_Scalar",
    "aten.__lshift__.Tensor",
    "aten.__lshift__.Scalar",
    kind=Kind.EXACT,
    operands=2,
)
def shift_left(x: Any, y: Any) -> PrimTensor:
    return ops.shift_left(x, y)


@pointwise(
    "aten.bitwise_right_shift.Tensor",
    "aten.bitwise_right_shift.Tensor_Scalar",
    "aten.__rshift__.Tensor",
    "aten.__rshift__.Scalar",
    kind=Kind.EXACT,
    operands=2,
)
def shift_right(x: Any, y: Any) -> PrimTensor:
    return ops.shift_right(x, y)


@pointwise("aten.pow.Scalar", operands=2, layout=row_major)
@pointwise("aten.pow.Tensor_Tensor", operands=2)
def pow(x: Any, y: Any) -> PrimTensor:
    return ops.pow(x, y)


@pointwise("aten.pow.Tensor_Scalar", operands=2, unary=True)
def pow_scalar(x: PrimTensor, exponent: Any) -> PrimTensor:
    """Small powers as products, halves as roots, as eager's kernel has them."""
    if promotion.is_integral(x.dtype):
        if isinstance(exponent, int) and exponent < 0:
            raise RuleMismatchError("integers to negative integer powers")
        return x * x if exponent == 2 else ops.pow(x, exponent)
    match exponent:
        case 1:
            return ops.clone(x)
        case 2:
            return x * x
        case 3:
            return x * x * x
        case 0.5:
            return ops.sqrt(x)
        case -0.5:
            return ops.rsqrt(x)
        case -1:
            return ops.reciprocal(x)
        case -2:
            return ops.reciprocal(x * x)
    return ops.pow(x, exponent)
