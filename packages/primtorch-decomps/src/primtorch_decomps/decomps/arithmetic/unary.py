"""Pointwise operators of one tensor: elementary functions, rounding, signs and tests."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps import promotion
from primtorch_decomps.pointwise import Kind, as_first, decomposition_of, pointwise, pointwise_rule
from primtorch_decomps.prims import PrimTensor, ops
from primtorch_decomps.registry import decomposes

_ELEMENTARY = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    *("erf", "erfc", "lgamma", "sigmoid"),
)
"""Operators that are one primitive, on floating-point numbers."""


def _elementary(name: str) -> Callable[[PrimTensor], PrimTensor]:
    primitive: Callable[[PrimTensor], PrimTensor] = getattr(ops, name)

    def formula(x: PrimTensor) -> PrimTensor:
        return primitive(x)

    return formula


for _name in _ELEMENTARY:
    pointwise(f"aten.{_name}.default", kind=Kind.FLOAT)(_elementary(_name))


def _rounding(primitive: Callable[[PrimTensor], PrimTensor]) -> Callable[[PrimTensor], PrimTensor]:
    def formula(x: PrimTensor) -> PrimTensor:
        return ops.clone(x) if promotion.is_integral(x.dtype) else primitive(x)

    return formula


for _name in ("floor", "ceil", "trunc", "round"):
    pointwise(f"aten.{_name}.default", kind=Kind.EXACT)(_rounding(getattr(ops, _name)))


@pointwise("aten.neg.default", kind=Kind.EXACT)
def neg(x: PrimTensor) -> PrimTensor:
    return ops.neg(x)


def _as_it_lies(x: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    return x


@decomposes("aten._neg_view.default", rule=_as_it_lies)
def neg_view(x: PrimTensor) -> PrimTensor:
    """A view that torch marks as negated: what a kernel of its own finds in memory is not what the program reads."""
    return ops.neg(x)


@pointwise("aten.abs.default", kind=Kind.EXACT)
def abs(x: PrimTensor) -> PrimTensor:
    return ops.clone(x) if promotion.category(x.dtype) == 0 else ops.abs(x)


@pointwise("aten.sign.default", "aten.sgn.default", kind=Kind.EXACT)
def sign(x: PrimTensor) -> PrimTensor:
    return ops.clone(x) if promotion.category(x.dtype) == 0 else ops.sign(x)


@pointwise("aten.frac.default", kind=Kind.EXACT)
def frac(x: PrimTensor) -> PrimTensor:
    return x - ops.trunc(x)


@pointwise("aten.bitwise_not.default", kind=Kind.EXACT)
def bitwise_not(x: PrimTensor) -> PrimTensor:
    return ops.bitwise_not(x)


@pointwise(
    "aten.positive.default", "aten.conj_physical.default", "aten._conj_physical.default", kind=Kind.EXACT
)
def positive(x: PrimTensor) -> PrimTensor:
    return ops.clone(x)


@pointwise("aten.logical_not.default", kind=Kind.BOOLEAN)
def logical_not(x: PrimTensor) -> PrimTensor:
    return ops.logical_not(x)


@pointwise("aten.isnan.default", kind=Kind.BOOLEAN)
def isnan(x: PrimTensor) -> PrimTensor:
    return never(x) if promotion.is_integral(x.dtype) else ops.isnan(x)


@pointwise("aten.isinf.default", kind=Kind.BOOLEAN)
def isinf(x: PrimTensor) -> PrimTensor:
    return never(x) if promotion.is_integral(x.dtype) else ops.isinf(x)


@pointwise("aten.isposinf.default", kind=Kind.BOOLEAN)
def isposinf(x: PrimTensor) -> PrimTensor:
    return never(x) if promotion.is_integral(x.dtype) else x_is(x, math.inf)


@pointwise("aten.isneginf.default", kind=Kind.BOOLEAN)
def isneginf(x: PrimTensor) -> PrimTensor:
    return never(x) if promotion.is_integral(x.dtype) else x_is(x, -math.inf)


@pointwise("aten.square.default")
def square(x: PrimTensor) -> PrimTensor:
    return x * x


@pointwise("aten.deg2rad.default", kind=Kind.FLOAT)
def deg2rad(x: PrimTensor) -> PrimTensor:
    return x * (math.pi / 180.0)


@pointwise("aten.rad2deg.default", kind=Kind.FLOAT)
def rad2deg(x: PrimTensor) -> PrimTensor:
    return x * (180.0 / math.pi)


@pointwise("aten.sinc.default", kind=Kind.FLOAT)
def sinc(x: PrimTensor) -> PrimTensor:
    angle = x * math.pi
    return ops.where(ops.eq(x, 0.0), 1.0, ops.sin(angle) / angle)


@decomposes("aten.logit.default", rule=pointwise_rule(Kind.FLOAT, 1))
def logit(x: PrimTensor, eps: float | None = None) -> Any:
    return _logit(x) if eps is None else _bounded_logit(x, *logit_bounds(x, eps))


def logit_bounds(x: PrimTensor, eps: float) -> tuple[Any, Any]:
    """``eps`` and ``1 - eps``; on a CPU eager rounds both to the half types: 1 - 1e-6 is 1 there."""
    compute = promotion.compute_dtype(x.dtype)
    if compute is x.dtype or x.device.type != "cpu":
        return eps, 1.0 - eps
    low = ops.full((), eps, x.dtype, x.device)
    return low, ops.convert_dtype(1.0 - ops.convert_dtype(low, compute), x.dtype)


def _log_of_odds(x: PrimTensor) -> PrimTensor:
    return ops.log(x / (1.0 - x))


def _log_of_bounded_odds(x: PrimTensor, low: Any, high: Any) -> PrimTensor:
    return _log_of_odds(ops.where(ops.lt(x, low), low, ops.where(ops.gt(x, high), high, x)))


_logit = decomposition_of(_log_of_odds, Kind.FLOAT, 1)
_bounded_logit = decomposition_of(_log_of_bounded_odds, Kind.FLOAT, 3)


@pointwise("aten.nan_to_num.default", kind=Kind.EXACT, layout=as_first)
def nan_to_num(
    x: PrimTensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> PrimTensor:

    if promotion.is_integral(x.dtype):
        return ops.clone(x)
    limits = torch.finfo(x.dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    finite = ops.where(x_is(x, math.inf), high, ops.where(x_is(x, -math.inf), low, x))
    return ops.where(ops.isnan(x), 0.0 if nan is None else nan, finite)


def never(x: PrimTensor) -> PrimTensor:
    """False everywhere, in the shape of ``x``."""
    return ops.ne(x, x)


def x_is(x: PrimTensor, value: float) -> PrimTensor:
    """Where ``x`` equals ``value``."""
    return ops.eq(x, value)
