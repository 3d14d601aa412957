"""Specs of products and distances of vectors, and of rows cut down to a largest norm."""

from __future__ import annotations

from typing import Any

from fx_interface.symbols import ShapeEnv, floordiv
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.pointwise import pointwise_spec
from primtorch_decomps.promotion import category, result_type
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.rules.linear_algebra.matmul import fresh
from primtorch_decomps.shapes import broadcast, canonical_dim, same
from primtorch_decomps.strides import any_zero


@spec_rule("aten.linalg_cross.default")
def cross(x: TensorSpec, y: TensorSpec, *, dim: int = -1, env: ShapeEnv) -> TensorSpec:
    if x.rank != y.rank or x.dtype is not y.dtype or x.device != y.device:
        raise RuleMismatchError("a cross product of unlike tensors")
    sizes = broadcast([x.sizes, y.sizes], env)
    if not same(sizes[canonical_dim(dim, x.rank)], 3, env):
        raise RuleMismatchError("a cross product needs vectors of three numbers")
    return fresh(sizes, x)


@spec_rule("aten.renorm.default")
def renorm(x: TensorSpec, p: Any, dim: int, maxnorm: Any, *, env: ShapeEnv) -> TensorSpec:
    if category(x.dtype) != 2 or x.rank < 2:
        raise RuleMismatchError("renorm of integers or vectors")
    canonical_dim(dim, x.rank)
    return fresh(x.sizes, x)


@spec_rule("aten.addr.default")
def addr(
    x: TensorSpec, column: TensorSpec, row: TensorSpec, *, beta: Any = 1, alpha: Any = 1, env: ShapeEnv
) -> TensorSpec:
    if column.rank != 1 or row.rank != 1:
        raise RuleMismatchError("an outer product of vectors")
    standing = TensorSpec((*column.sizes, 1), (*column.strides, 1), column.dtype, column.device)
    spec = pointwise_spec([x, standing, row], result_type([x, column, row]), env)
    if (
        spec.rank != 2
        or not same(spec.sizes[0], column.sizes[0], env)
        or not same(spec.sizes[1], row.sizes[0], env)
    ):
        raise RuleMismatchError("a matrix that an outer product cannot be added to")
    return spec


@spec_rule("aten.dist.default")
def dist(x: TensorSpec, y: TensorSpec, p: Any = 2, *, env: ShapeEnv) -> TensorSpec:
    dtype = result_type([x, y])
    if category(dtype) != 2:
        raise RuleMismatchError("the distance of integers or complex numbers")
    broadcast([x.sizes, y.sizes], env)
    return TensorSpec((), (), dtype, x.device)


@spec_rule("aten._cdist_forward.default", "aten._euclidean_dist.default")
def distances(
    x: TensorSpec, y: TensorSpec, p: float = 2.0, compute_mode: int | None = None, *, env: ShapeEnv
) -> TensorSpec:
    """[..., n, k] and [..., m, k] -> [..., n, m]."""
    if min(x.rank, y.rank) < 2 or x.dtype is not y.dtype or x.device != y.device:
        raise RuleMismatchError("distances of unlike tensors, or of no rows")
    if not same(x.sizes[-1], y.sizes[-1], env):
        raise RuleMismatchError("distances of rows of different length")
    batch = broadcast([x.sizes[:-2], y.sizes[:-2]], env)
    return fresh((*batch, x.sizes[-2], y.sizes[-2]), x)


@spec_rule("aten._cdist_backward.default")
def distances_backward(
    grad: TensorSpec, x: TensorSpec, y: TensorSpec, p: float, cdist: TensorSpec, *, env: ShapeEnv
) -> TensorSpec:
    """The gradient of ``x``, with the batch dimensions that it was stretched to, unless there is nothing to compute."""
    batch = broadcast([x.sizes[:-2], y.sizes[:-2]], env)
    if any_zero((*batch, *x.sizes[-2:], y.sizes[-2])):
        return fresh(x.sizes, x)
    return fresh((*batch, *x.sizes[-2:]), x)


@spec_rule("aten._pdist_forward.default")
def distances_of_pairs(x: TensorSpec, p: Any = 2, *, env: ShapeEnv) -> TensorSpec:
    """Rows [n, m] -> [n * (n - 1) / 2]."""
    if x.rank != 2 or not x.is_contiguous or not x.dtype.is_floating_point:
        raise RuleMismatchError("rows of numbers, one after the other")
    rows = x.sizes[0]
    return fresh((floordiv(rows * (rows - 1), 2),), x)


@spec_rule("aten._pdist_backward.default")
def distances_of_pairs_backward(
    grad: TensorSpec, x: TensorSpec, p: Any, distances: TensorSpec, *, env: ShapeEnv
) -> TensorSpec:
    return fresh(x.sizes, x)
