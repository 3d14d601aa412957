"""Specs of reductions: row-major results; running the formula on stand-ins takes longer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from fx_interface.symbols import Relation, ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.promotion import category, is_integral, to_float
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.shapes import canonical_dims, reduced_sizes

Dims = int | Sequence[int] | None
_REAL = {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}


def reduced_to(x: TensorSpec, dims: Dims, keepdim: bool, dtype: torch.dtype) -> TensorSpec:
    """``x`` reduced over ``dims`` (None or empty: all) to a result of ``dtype``."""
    sizes = reduced_sizes(x.sizes, canonical_dims(dims, x.rank), keepdim)
    return TensorSpec(sizes, contiguous_strides(sizes), dtype, x.device)


def _summed(x: TensorSpec, dtype: torch.dtype | None) -> torch.dtype:
    return dtype or (torch.int64 if is_integral(x.dtype) else x.dtype)


@spec_rule("aten.sum.dim_IntList", "aten.prod.dim_int")
def sum_dims(
    x: TensorSpec, dim: Dims, keepdim: bool = False, *, dtype: torch.dtype | None = None, env: ShapeEnv
) -> TensorSpec:
    return reduced_to(x, dim, keepdim, _summed(x, dtype))


@spec_rule("aten.mean.dim")
def mean_dims(
    x: TensorSpec, dim: Dims, keepdim: bool = False, *, dtype: torch.dtype | None = None, env: ShapeEnv
) -> TensorSpec:
    result = dtype or x.dtype
    if is_integral(result):
        raise RuleMismatchError("the mean of integers needs a floating dtype")
    return reduced_to(x, dim, keepdim, result)


@spec_rule("aten.logsumexp.default")
def logsumexp(x: TensorSpec, dim: Dims, keepdim: bool = False, *, env: ShapeEnv) -> TensorSpec:
    return reduced_to(x, dim, keepdim, to_float(x.dtype))


@spec_rule("aten.any.dim", "aten.all.dim", "aten.any.dims", "aten.all.dims")
def any_dims(x: TensorSpec, dim: Dims = None, keepdim: bool = False, *, env: ShapeEnv) -> TensorSpec:
    if dim is not None and not isinstance(dim, int) and not len(dim):
        raise RuleMismatchError("an empty list of dimensions, which means none of them here")
    return reduced_to(x, dim, keepdim, torch.uint8 if x.dtype is torch.uint8 else torch.bool)


def _ordered(x: TensorSpec, dims: Dims, env: ShapeEnv) -> None:
    """An extreme of some elements, which must have an order. Of how many, only data may tell: at least one."""
    axes = canonical_dims(dims, x.rank)
    for axis in axes if x.rank else ():
        size = x.sizes[axis]
        if not isinstance(size, int) and env.is_from_data(size):
            env.expect(Relation("<=", 1, size))
    if category(x.dtype) == 3 or any(isinstance(x.sizes[a], int) and x.sizes[a] == 0 for a in axes):
        raise RuleMismatchError("an extreme of nothing, or of complex numbers")


def _extreme(x: TensorSpec, dim: Dims = (), keepdim: bool = False, *, env: ShapeEnv) -> TensorSpec:
    _ordered(x, dim, env)
    return reduced_to(x, dim, keepdim, x.dtype)


def _extreme_of_all(x: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    _ordered(x, None, env)
    return TensorSpec((), (), x.dtype, x.device)


def _extreme_and_place(x: TensorSpec, dim: int, keepdim: bool = False, *, env: ShapeEnv) -> Any:
    _ordered(x, dim, env)
    return reduced_to(x, dim, keepdim, x.dtype), reduced_to(x, dim, keepdim, torch.int64)


def _place(x: TensorSpec, dim: int | None = None, keepdim: bool = False, *, env: ShapeEnv) -> TensorSpec:
    _ordered(x, dim, env)
    if x.dtype is torch.bool:
        raise RuleMismatchError("the place of an extreme of booleans")
    return reduced_to(x, dim, keepdim, torch.int64)


_EXTREMES: dict[Callable[..., Any], tuple[str, ...]] = {
    _extreme: ("aten.amax.default", "aten.amin.default"),
    _extreme_of_all: ("aten.max.default", "aten.min.default"),
    _extreme_and_place: ("aten.max.dim", "aten.min.dim"),
    _place: ("aten.argmax.default", "aten.argmin.default"),
}
for _rule, _names in _EXTREMES.items():
    spec_rule(*_names)(_rule)


@spec_rule("aten.aminmax.default")
def aminmax(
    x: TensorSpec, *, dim: int | None = None, keepdim: bool = False, env: ShapeEnv
) -> tuple[TensorSpec, TensorSpec]:
    _ordered(x, dim, env)
    spec = reduced_to(x, dim, keepdim, x.dtype)
    return spec, spec


@spec_rule("aten.linalg_vector_norm.default")
def vector_norm(
    x: TensorSpec,
    ord: Any = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    env: ShapeEnv,
) -> TensorSpec:
    if is_integral(x.dtype) or dtype is not None:
        raise RuleMismatchError("a norm in another dtype")
    if any(isinstance(size, int) and size == 0 for size in x.sizes):
        raise RuleMismatchError("a norm of nothing")
    if ord in (math.inf, -math.inf):
        _ordered(x, dim, env)
    return reduced_to(x, dim, keepdim, _REAL.get(x.dtype, x.dtype))


@spec_rule("aten.norm.ScalarOpt_dim")
def norm_dims(x: TensorSpec, p: Any, dim: Dims, keepdim: bool = False, *, env: ShapeEnv) -> TensorSpec:
    return vector_norm(x, p, dim, keepdim, env=env)


@spec_rule("aten.trace.default")
def trace(x: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    if x.rank != 2:
        raise RuleMismatchError("the trace of a matrix")
    return TensorSpec((), (), _summed(x, None), x.device)
