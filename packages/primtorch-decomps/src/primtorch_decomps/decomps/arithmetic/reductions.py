"""Reductions: half types accumulate in float32, integers sum to int64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from fx_interface.symbols import IntLike
from primtorch_decomps.decomps.arithmetic.comparison import truth
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.prims import PrimTensor, keep_dims, ops
from primtorch_decomps.promotion import compute_dtype, constant, is_integral, to_float
from primtorch_decomps.registry import decomposes
from primtorch_decomps.shapes import canonical_dim, canonical_dims
from primtorch_decomps.strides import any_zero

Dims = int | Sequence[int] | None
Primitive = Callable[[PrimTensor, Sequence[int]], PrimTensor]


def reduce(primitive: Primitive, x: PrimTensor, dims: Dims, keepdim: bool = False) -> PrimTensor:
    """``primitive`` over ``dims`` (None or empty: all)."""
    axes = canonical_dims(dims, x.rank)
    if not axes:
        return truth(x) if primitive in (ops.any, ops.all) else x
    result = primitive(x, axes)
    return keep_dims(result, axes, x.rank) if keepdim else result


def accumulate(
    primitive: Primitive, x: PrimTensor, dims: Dims, keepdim: bool, dtype: torch.dtype | None
) -> PrimTensor:
    """A sum or product: integers become int64, half types are accumulated in float32, unless ``dtype`` says else."""
    result = dtype or (torch.int64 if is_integral(x.dtype) else x.dtype)
    wide = ops.convert_dtype(ops.convert_dtype(x, result), compute_dtype(result))
    if result is torch.bool:
        return reduce(ops.any if primitive is ops.sum else ops.all, wide, dims, keepdim)
    return ops.convert_dtype(reduce(primitive, wide, dims, keepdim), result)


@decomposes("aten.sum.dim_IntList")
def sum_dims(
    x: PrimTensor, dim: Dims, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> PrimTensor:
    return accumulate(ops.sum, x, dim, keepdim, dtype)


@decomposes("aten.sum.default")
def sum_all(x: PrimTensor, *, dtype: torch.dtype | None = None) -> PrimTensor:
    return accumulate(ops.sum, x, None, False, dtype)


@decomposes("aten.nansum.default")
def nansum(
    x: PrimTensor, dim: Dims = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> PrimTensor:
    known = x if is_integral(x.dtype) else ops.where(ops.isnan(x), 0.0, x)
    return accumulate(ops.sum, known, dim, keepdim, dtype)


@decomposes("aten.prod.default")
def prod_all(x: PrimTensor, *, dtype: torch.dtype | None = None) -> PrimTensor:
    return accumulate(ops.prod, x, None, False, dtype)


@decomposes("aten.prod.dim_int")
def prod_dim(
    x: PrimTensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> PrimTensor:
    return accumulate(ops.prod, x, dim, keepdim, dtype)


def count(x: PrimTensor, dims: Dims) -> IntLike:
    """How many elements one result of a reduction sees."""
    return ops.numel(x, canonical_dims(dims, x.rank))


@decomposes("aten.mean.dim")
def mean_dims(
    x: PrimTensor, dim: Dims, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> PrimTensor:
    result = dtype or x.dtype
    if is_integral(result):
        raise RuleMismatchError("the mean of integers needs a floating dtype")
    wide = ops.convert_dtype(ops.convert_dtype(x, result), compute_dtype(result))
    return ops.convert_dtype(ops.div(reduce(ops.sum, wide, dim, keepdim), count(x, dim)), result)


@decomposes("aten.mean.default")
def mean_all(x: PrimTensor, *, dtype: torch.dtype | None = None) -> PrimTensor:
    return mean_dims(x, None, False, dtype=dtype)


def _nonempty(x: PrimTensor, dims: Dims) -> None:
    if any(isinstance(x.sizes[a], int) and x.sizes[a] == 0 for a in canonical_dims(dims, x.rank)):
        raise RuleMismatchError("an extreme of no elements")


@decomposes("aten.amax.default")
def amax(x: PrimTensor, dim: Dims = (), keepdim: bool = False) -> PrimTensor:
    _nonempty(x, dim)
    return reduce(ops.amax, x, dim, keepdim)


@decomposes("aten.amin.default")
def amin(x: PrimTensor, dim: Dims = (), keepdim: bool = False) -> PrimTensor:
    _nonempty(x, dim)
    return reduce(ops.amin, x, dim, keepdim)


@decomposes("aten.max.default")
def max_all(x: PrimTensor) -> PrimTensor:
    return amax(x)


@decomposes("aten.min.default")
def min_all(x: PrimTensor) -> PrimTensor:
    return amin(x)


@decomposes("aten.aminmax.default")
def aminmax(x: PrimTensor, *, dim: int | None = None, keepdim: bool = False) -> tuple[PrimTensor, PrimTensor]:
    return amin(x, dim, keepdim), amax(x, dim, keepdim)


def _arg_reduce(
    primitive: Callable[[PrimTensor, int], PrimTensor], x: PrimTensor, dim: int | None, keepdim: bool
) -> PrimTensor:
    _nonempty(x, dim)
    if x.rank == 0:
        return ops.full((), 0, torch.int64, x.device)
    if x.dtype is torch.bool:
        x = ops.convert_dtype(x, torch.uint8)
    flat = x if dim is not None else ops.reshape(x, (x.numel,))
    axis = 0 if dim is None else canonical_dim(dim, x.rank)
    found = primitive(flat, axis)
    if not keepdim:
        return found
    return ops.reshape(found, (1,) * x.rank) if dim is None else keep_dims(found, (axis,), x.rank)


def _no_bool(x: PrimTensor) -> None:
    if x.dtype is torch.bool:
        raise RuleMismatchError("the place of an extreme of booleans")


@decomposes("aten.argmax.default")
def argmax(x: PrimTensor, dim: int | None = None, keepdim: bool = False) -> PrimTensor:
    _no_bool(x)
    return _arg_reduce(ops.argmax, x, dim, keepdim)


@decomposes("aten.argmin.default")
def argmin(x: PrimTensor, dim: int | None = None, keepdim: bool = False) -> PrimTensor:
    _no_bool(x)
    return _arg_reduce(ops.argmin, x, dim, keepdim)


@decomposes("aten.max.dim")
def max_dim(x: PrimTensor, dim: int, keepdim: bool = False) -> tuple[PrimTensor, PrimTensor]:
    return amax(x, dim, keepdim), _arg_reduce(ops.argmax, x, dim, keepdim)


@decomposes("aten.min.dim")
def min_dim(x: PrimTensor, dim: int, keepdim: bool = False) -> tuple[PrimTensor, PrimTensor]:
    return amin(x, dim, keepdim), _arg_reduce(ops.argmin, x, dim, keepdim)


def _test(primitive: Primitive, x: PrimTensor, dims: Dims, keepdim: bool) -> PrimTensor:
    result = reduce(primitive, truth(x), dims, keepdim)
    return ops.convert_dtype(result, torch.uint8) if x.dtype is torch.uint8 else result


@decomposes("aten.any.default")
def any_all(x: PrimTensor) -> PrimTensor:
    return _test(ops.any, x, None, False)


@decomposes("aten.any.dim", "aten.any.dims")
def any_dims(x: PrimTensor, dim: Dims = None, keepdim: bool = False) -> PrimTensor:
    return _test(ops.any, x, dim, keepdim)


@decomposes("aten.all.default")
def all_all(x: PrimTensor) -> PrimTensor:
    return _test(ops.all, x, None, False)


@decomposes("aten.all.dim", "aten.all.dims")
def all_dims(x: PrimTensor, dim: Dims = None, keepdim: bool = False) -> PrimTensor:
    return _test(ops.all, x, dim, keepdim)


@decomposes("aten._is_all_true.default")
def is_all_true(x: PrimTensor) -> PrimTensor:
    _only_bool(x)
    return all_all(x)


@decomposes("aten._is_any_true.default")
def is_any_true(x: PrimTensor) -> PrimTensor:
    _only_bool(x)
    return any_all(x)


def _only_bool(x: PrimTensor) -> None:
    if x.dtype is not torch.bool:
        raise RuleMismatchError("whether numbers are true")


@decomposes("aten.logsumexp.default")
def logsumexp(x: PrimTensor, dim: Dims, keepdim: bool = False) -> PrimTensor:
    dtype = to_float(x.dtype)
    wide = ops.convert_dtype(x, compute_dtype(dtype))
    if any_zero(x.sizes):
        logarithm = ops.log(reduce(ops.sum, ops.exp(wide), dim, True))
    else:
        top = reduce(ops.amax, wide, dim, True)
        top = ops.where(ops.isinf(top), 0.0, top)
        logarithm = ops.log(reduce(ops.sum, ops.exp(wide - top), dim, True)) + top
    axes = canonical_dims(dim, x.rank)
    if not keepdim:
        logarithm = ops.reshape(logarithm, tuple(s for a, s in enumerate(x.sizes) if a not in axes))
    return ops.convert_dtype(logarithm, dtype)


@decomposes("aten.linalg_vector_norm.default")
def vector_norm(
    x: PrimTensor, ord: Any = 2, dim: Dims = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> PrimTensor:
    result = dtype or x.dtype
    if is_integral(x.dtype):
        raise RuleMismatchError("the norm of integers")
    size = ops.abs(ops.convert_dtype(ops.convert_dtype(x, result), compute_dtype(result)))
    order = float(constant(ord))
    if order != 0.0 and _of_one_element(size, dim):  # whose power may not be finite
        return ops.convert_dtype(reduce(ops.amax, size, dim, keepdim), result)
    return ops.convert_dtype(absolute_norm(size, order, dim, keepdim), result)


def _of_one_element(x: PrimTensor, dims: Dims) -> bool:
    sizes = [x.sizes[dim] for dim in canonical_dims(dims, x.rank)]
    return all(isinstance(size, int) and size == 1 for size in sizes)


def absolute_norm(size: PrimTensor, order: float, dims: Dims, keepdim: bool) -> PrimTensor:
    """The norm of numbers of which ``size`` is the absolute value, over ``dims``."""
    match order:
        case 0.0:
            return reduce(ops.sum, ops.convert_dtype(ops.ne(size, 0.0), size.dtype), dims, keepdim)
        case 1.0:
            return reduce(ops.sum, size, dims, keepdim)
        case 2.0:
            return ops.sqrt(reduce(ops.sum, size * size, dims, keepdim))
    if order in (float("inf"), float("-inf")):
        _nonempty(size, dims)
        return reduce(ops.amax if order > 0 else ops.amin, size, dims, keepdim)
    return ops.pow(reduce(ops.sum, ops.pow(size, order), dims, keepdim), 1.0 / order)


@decomposes("aten.norm.ScalarOpt_dim", "aten.norm.ScalarOpt_dim_dtype")
def norm_dims(
    x: PrimTensor, p: Any, dim: Dims, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> PrimTensor:
    return vector_norm(x, 2 if p is None else p, dim, keepdim, dtype=dtype)


@decomposes("aten.norm.Scalar")
def norm_all(x: PrimTensor, p: Any = 2) -> PrimTensor:
    return vector_norm(x, p)


@decomposes("aten.count_nonzero.default")
def count_nonzero_dim(x: PrimTensor, dim: int | None = None) -> PrimTensor:
    return count_nonzero(x, dim)


@decomposes("aten.count_nonzero.dim_IntList")
def count_nonzero(x: PrimTensor, dim: Dims) -> PrimTensor:
    return reduce(ops.sum, ops.convert_dtype(truth(x), torch.int64), dim)
