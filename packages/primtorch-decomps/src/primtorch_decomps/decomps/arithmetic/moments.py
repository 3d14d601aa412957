"""Mean and variance in two passes, and the operators that are made of them."""

from __future__ import annotations

from typing import Any

import torch

from fx_interface.symbols import IntLike, Relation, maximum
from primtorch_decomps.decomps.arithmetic.reductions import Dims, count, reduce
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.prims import PrimTensor, broadcast_to, current_trace, ops
from primtorch_decomps.promotion import compute_dtype, constant, is_integral
from primtorch_decomps.registry import decomposes
from primtorch_decomps.shapes import canonical_dims

_UNKNOWN_COUNT = 32
"""Numbers whose count is a symbol are at most two to this."""
_FAR = 2.0**-14
"""The square of how much smaller than the mean a deviation is from which on rounding the mean counts."""


def moments(
    x: PrimTensor, dims: Dims, correction: float = 0, *, scaled: bool = False, corrected: bool = False
) -> tuple[PrimTensor, PrimTensor]:
    """Variance and mean over ``dims``, dimensions kept.

    The corrected two-pass algorithm (Chan, Golub and LeVeque, Algorithms for computing the sample variance, 1983):

        m = sum(x) / n                              as it is rounded
        e = sum(x - m)                              what m is off by, times n
        variance = (sum((x - m)**2) - e**2 / n) / (n - correction)
        mean = m + e / n

    ``m`` is off by some units in the last place, which counts only where it is far larger than the deviation. ``e`` is
    0 elsewhere: generated code skips the loop over a row that adds nothing but zeros. ``scaled`` makes the terms of the
    first sum small enough that it cannot overflow where the mean does not; of float16 it never does in float32. Other
    devices than a CPU, where a pass cannot be skipped, take ``e`` for 0 unless the variance is to be ``corrected``
    there: torch's kernels add up in one pass in float32, and are off by more, but for equal numbers. ``e`` is then
    added up beside the squares. Of equal numbers, all of them the same few units of the last place away from ``m``,
    every term is a small integer times a power of two: their variance is 0, and a deviation of 0 has no gradient.
    """
    number = count(x, dims)
    near = _scaled_mean(x, dims, number) if scaled else ops.div(reduce(ops.sum, x, dims, True), number)
    distance = x - near
    squares = reduce(ops.sum, distance * distance, dims, True)
    freedom = _freedom(number, correction)
    if x.device.type != "cpu" and not corrected:
        return ops.div(squares, freedom), near
    if x.device.type != "cpu":
        error = reduce(ops.sum, distance, dims, True)
        offset = ops.div(error, number)
        return ops.div(ops.maximum(squares - error * offset, 0.0), freedom), near + offset
    limit = near * near * (number * _FAR) if isinstance(number, int) else near * near * _FAR * number
    far = ops.lt(squares, limit)
    error = reduce(ops.sum, ops.where(broadcast_to(far, x.sizes), distance, 0.0), dims, True)
    offset = error * (1.0 / number) if isinstance(number, int) and number else ops.div(error, number)
    return ops.div(ops.maximum(squares - error * offset, 0.0), freedom), near + offset


def wide_moments(x: PrimTensor, dims: Dims, correction: float = 0) -> tuple[PrimTensor, PrimTensor]:
    """Variance and mean of float32 numbers over ``dims``, dimensions kept; both are added up in float64, as torch's
    kernels for a CPU do: squares of large numbers do not overflow, and equal terms are not rounded to one side.
    """
    number = count(x, dims)
    wide = ops.convert_dtype(x, torch.float64)
    mean = ops.div(reduce(ops.sum, wide, dims, True), number)
    distance = wide - mean
    squares = reduce(ops.sum, distance * distance, dims, True)
    variance = ops.div(squares, _freedom(number, correction))
    return ops.convert_dtype(variance, x.dtype), ops.convert_dtype(mean, x.dtype)


def _freedom(number: IntLike, correction: float) -> IntLike | float:
    """Degrees of freedom."""
    if isinstance(number, int):
        return max(number - correction, 0)
    return _not_negative(number - int(correction))


def _not_negative(freedom: IntLike) -> IntLike:
    """Degrees of freedom: none where the correction is larger than the count."""
    return freedom if current_trace().env.known(Relation("<=", 0, freedom)) is True else maximum(freedom, 0)


def _scaled_mean(x: PrimTensor, dims: Dims, number: IntLike) -> PrimTensor:
    """The sum of ``x`` times a power of two, which rounds nothing, divided by as much."""
    exponent = _UNKNOWN_COUNT if not isinstance(number, int) else max(number - 1, 0).bit_length()
    total = reduce(ops.sum, x * 2.0**-exponent, dims, True)
    if isinstance(number, int):
        return ops.div(total, number * 2.0**-exponent)
    return ops.div(total, number) * 2.0**exponent


def _variance(x: PrimTensor, dims: Dims, correction: Any, keepdim: bool) -> tuple[PrimTensor, PrimTensor]:
    if is_integral(x.dtype):
        raise RuleMismatchError("variance of integers")
    correction = 1 if correction is None else constant(correction)
    if float(correction).is_integer():
        correction = int(correction)
    elif not isinstance(count(x, dims), int):
        raise RuleMismatchError("a fractional correction of a symbolic count")
    if x.dtype == torch.float32 and x.device.type == "cpu":
        variance, mean = wide_moments(x, dims, correction)
    else:
        wide = ops.convert_dtype(x, compute_dtype(x.dtype))
        variance, mean = moments(wide, dims, correction, scaled=x.dtype != torch.float16, corrected=True)
    if not keepdim:
        axes = canonical_dims(dims, x.rank)
        sizes = tuple(size for axis, size in enumerate(x.sizes) if axis not in axes)
        variance, mean = ops.reshape(variance, sizes), ops.reshape(mean, sizes)
    return variance, mean


@decomposes("aten.var.correction")
def var(x: PrimTensor, dim: Dims = None, *, correction: Any = None, keepdim: bool = False) -> PrimTensor:
    return ops.convert_dtype(_variance(x, dim, correction, keepdim)[0], x.dtype)


@decomposes("aten.std.correction")
def std(x: PrimTensor, dim: Dims = None, *, correction: Any = None, keepdim: bool = False) -> PrimTensor:
    return ops.convert_dtype(ops.sqrt(_variance(x, dim, correction, keepdim)[0]), x.dtype)


@decomposes("aten.var_mean.correction")
def var_mean(
    x: PrimTensor, dim: Dims = None, *, correction: Any = None, keepdim: bool = False
) -> tuple[PrimTensor, PrimTensor]:
    variance, mean = _variance(x, dim, correction, keepdim)
    return ops.convert_dtype(variance, x.dtype), ops.convert_dtype(mean, x.dtype)


@decomposes("aten.std_mean.correction")
def std_mean(
    x: PrimTensor, dim: Dims = None, *, correction: Any = None, keepdim: bool = False
) -> tuple[PrimTensor, PrimTensor]:
    variance, mean = _variance(x, dim, correction, keepdim)
    return ops.convert_dtype(ops.sqrt(variance), x.dtype), ops.convert_dtype(mean, x.dtype)
