"""Vectors: distances, cross and outer products, and rows cut down to a largest norm."""

from __future__ import annotations

from typing import Any

from primtorch_decomps import promotion
from primtorch_decomps.decomps.arithmetic.reductions import absolute_norm
from primtorch_decomps.decomps.data_movement.joining import rolled
from primtorch_decomps.decomps.neural_networks.normalization import wide
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.prims import PrimTensor, broadcast_all, broadcast_to, ops
from primtorch_decomps.registry import decomposes
from primtorch_decomps.shapes import canonical_dim


@decomposes("aten.dist.default")
def dist(x: PrimTensor, y: PrimTensor, p: Any = 2) -> PrimTensor:
    dtype = promotion.result_type([x, y])
    if promotion.category(dtype) != 2:
        raise RuleMismatchError("the distance of integers")
    left, right = broadcast_all(ops.convert_dtype(x, dtype), ops.convert_dtype(y, dtype))
    difference = ops.abs(wide(ops.convert_dtype(wide(left) - wide(right), dtype)))
    return ops.convert_dtype(absolute_norm(difference, float(promotion.constant(p)), None, False), dtype)


@decomposes("aten.renorm.default")
def renorm(x: PrimTensor, p: Any, dim: int, maxnorm: Any) -> PrimTensor:
    """Each slice along ``dim`` scaled down to norm ``maxnorm`` where its norm is larger."""
    if promotion.category(x.dtype) != 2 or x.rank < 2:
        raise RuleMismatchError("renorm of integers or vectors")
    axis = canonical_dim(dim, x.rank)
    rest = tuple(d for d in range(x.rank) if d != axis)
    order, most = (float(promotion.constant(number)) for number in (p, maxnorm))
    norm = absolute_norm(ops.abs(wide(x)), order, rest, True)
    scale = ops.where(ops.gt(norm, most), ops.div(most, norm + 1e-7), 1.0)
    return ops.convert_dtype(
        wide(x) * broadcast_to(ops.convert_dtype(scale, wide(x).dtype), x.sizes), x.dtype
    )


@decomposes("aten.linalg_cross.default")
def cross(x: PrimTensor, y: PrimTensor, *, dim: int = -1) -> PrimTensor:
    left, right = broadcast_all(x, y)
    axis = canonical_dim(dim, left.rank)
    if left.sizes[axis] != 3 or x.dtype is not y.dtype:
        raise RuleMismatchError("a cross product needs vectors of three numbers")
    one, other = wide(left), wide(right)
    ahead = rolled(one, -1, axis) * rolled(other, 1, axis)
    behind = rolled(one, 1, axis) * rolled(other, -1, axis)
    return ops.convert_dtype(ahead - behind, x.dtype)


@decomposes("aten.addr.default")
def addr(x: PrimTensor, column: PrimTensor, row: PrimTensor, *, beta: Any = 1, alpha: Any = 1) -> PrimTensor:
    """``beta * x + alpha * column * row``; with beta 0 not even NaN of ``x`` shows."""
    dtype = promotion.result_type([x, column, row])
    if promotion.category(dtype) not in (1, 2) or column.rank != 1 or row.rank != 1:
        raise RuleMismatchError("an outer product of vectors of numbers")
    sizes = (column.sizes[0], row.sizes[0])
    beta, alpha = (promotion.cast_number(number, dtype) for number in (beta, alpha))
    given, left, right = (wide(ops.convert_dtype(t, dtype)) for t in (x, column, row))
    product = ops.broadcast_in_dim(left, sizes, (0,)) * ops.broadcast_in_dim(right, sizes, (1,)) * alpha
    if beta == 0:
        return ops.convert_dtype(product, dtype)
    return ops.convert_dtype(broadcast_to(given, sizes) * beta + product, dtype)
