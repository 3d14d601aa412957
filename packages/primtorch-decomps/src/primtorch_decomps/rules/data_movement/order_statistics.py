"""Specs of what ranks elements: medians and their like, running extremes, memberships and histograms."""

from __future__ import annotations

from typing import Any

import torch

from fx_interface.symbols import IntLike, ShapeEnv
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.rules.linear_algebra.factorizations import row_major
from primtorch_decomps.shapes import canonical_dim, reduced_sizes


def _value_and_place(x: TensorSpec, sizes: tuple[IntLike, ...]) -> tuple[TensorSpec, TensorSpec]:
    return row_major(sizes, x), row_major(sizes, x, torch.int64)


@spec_rule("aten.median.dim", "aten.nanmedian.dim", "aten.mode.default")
def middle(
    x: TensorSpec, dim: int = -1, keepdim: bool = False, *, env: ShapeEnv
) -> tuple[TensorSpec, TensorSpec]:
    if not x.rank or 0 in x.sizes or x.dtype is torch.bool:
        raise RuleMismatchError("a median of nothing, or of one number")
    return _value_and_place(x, reduced_sizes(x.sizes, [canonical_dim(dim, x.rank)], keepdim))


@spec_rule("aten.median.default", "aten.nanmedian.default")
def middle_of_all(x: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    if x.dtype is torch.bool or x.dtype.is_complex:
        raise RuleMismatchError("a median of what has no order")
    return row_major((), x)


@spec_rule("aten.kthvalue.default")
def kth_value(
    x: TensorSpec, k: IntLike, dim: int = -1, keepdim: bool = False, *, env: ShapeEnv
) -> tuple[TensorSpec, TensorSpec]:
    return middle(x, dim, keepdim, env=env)


@spec_rule("aten.cummax.default", "aten.cummin.default")
def running_extreme(x: TensorSpec, dim: int, *, env: ShapeEnv) -> tuple[TensorSpec, TensorSpec]:
    canonical_dim(dim, x.rank)
    return _value_and_place(x, x.sizes)


@spec_rule("aten.logcumsumexp.default")
def running_logarithm(x: TensorSpec, dim: int, *, env: ShapeEnv) -> TensorSpec:
    if not x.dtype.is_floating_point and not x.dtype.is_complex:
        raise RuleMismatchError("a sum of logarithms of integers")
    canonical_dim(dim, x.rank)
    return row_major(x.sizes, x)


@spec_rule("aten.isin.Tensor_Tensor", "aten.isin.Tensor_Scalar")
def is_in(elements: TensorSpec, among: Any, *, env: ShapeEnv, **options: Any) -> TensorSpec:
    return row_major(elements.sizes, elements, torch.bool)


@spec_rule("aten.histc.default")
def histogram(x: TensorSpec, bins: IntLike = 100, min: Any = 0, max: Any = 0, *, env: ShapeEnv) -> TensorSpec:
    """[...] -> [bins]."""
    if not x.dtype.is_floating_point or (isinstance(bins, int) and bins < 1):
        raise RuleMismatchError("what torch's kernel checks")
    return row_major((bins,), x)
