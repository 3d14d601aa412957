"""Pointwise formulas of mathematics that torch has kernels for: logarithms of sums, entropies, decimal rounding."""

from __future__ import annotations

import math
from typing import Any

from primtorch_decomps import promotion
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.pointwise import Kind, pointwise, row_major
from primtorch_decomps.prims import PrimTensor, ops


@pointwise("aten.angle.default", kind=Kind.FLOAT)
def angle(x: PrimTensor) -> PrimTensor:
    """Of real numbers: pi for negative ones, 0 for the others, NaN for NaN."""
    return ops.where(ops.isnan(x), x, ops.convert_dtype(ops.lt(x, 0.0), x.dtype) * math.pi)


@pointwise("aten.logaddexp2.default", operands=2)
def logaddexp2(x: PrimTensor, y: PrimTensor) -> PrimTensor:
    high, low = ops.maximum(x, y), ops.minimum(x, y)
    sum_of_both = high + ops.log1p(ops.exp2(low - high)) * (1.0 / math.log(2.0))
    return ops.where(ops.isinf(x) & ops.eq(x, y), x, sum_of_both)


@pointwise("aten.special_entr.default", kind=Kind.FLOAT)
def entr(x: PrimTensor) -> PrimTensor:
    positive = -x * ops.log(x)
    rest = ops.where(ops.eq(x, 0.0), 0.0, ops.where(ops.isnan(x), x, -math.inf))
    return ops.where(ops.gt(x, 0.0), positive, rest)


@pointwise("aten.special_xlog1py.default", kind=Kind.FLOAT, operands=2)
def xlog1py(x: Any, y: Any) -> PrimTensor:
    zero = ops.where(ops.isnan(y), y, 0.0)
    return ops.where(ops.eq(x, 0.0), zero, x * ops.log1p(y))


@pointwise("aten.mvlgamma.default", kind=Kind.FLOAT, layout=row_major)
def mvlgamma(x: PrimTensor, p: int) -> PrimTensor:
    """The logarithm of the gamma function of p-dimensional matrices: a sum of p shifted ones."""
    total = ops.lgamma(x)
    for place in range(1, p):
        total = total + ops.lgamma(x - 0.5 * place)
    return total + p * (p - 1) / 4 * math.log(math.pi)


@pointwise("aten.round.decimals")
def round_decimals(x: PrimTensor, *, decimals: int = 0) -> PrimTensor:
    if promotion.is_integral(x.dtype):
        if decimals < 0:
            raise RuleMismatchError("integers rounded to tens")
        return ops.clone(x)
    power = 10.0 ** abs(decimals)
    return ops.round(x * power) / power if decimals >= 0 else ops.round(x / power) * power
