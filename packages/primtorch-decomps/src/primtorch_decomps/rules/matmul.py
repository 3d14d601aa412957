"""Specs of matrix products; they are library calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fx_interface.symbols import IntLike, ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.shapes import broadcast, same, same_sizes


def fresh(sizes: Sequence[IntLike], like: TensorSpec) -> TensorSpec:
    """A row-major tensor with the dtype and device of another."""
    sizes = tuple(sizes)
    return TensorSpec(sizes, contiguous_strides(sizes), like.dtype, like.device)


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise RuleMismatchError(what)


@spec_rule("aten.mm.default")
def mm(x: TensorSpec, y: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    """[n, k] x [k, m] -> [n, m]."""
    _check(x.rank == 2 and y.rank == 2 and x.dtype is y.dtype and x.device == y.device, "mm of two matrices")
    _check(same(x.sizes[1], y.sizes[0], env), "mm needs equal inner sizes")
    return fresh((x.sizes[0], y.sizes[1]), x)


@spec_rule("aten.addmm.default")
def addmm(
    bias: TensorSpec, x: TensorSpec, y: TensorSpec, *, beta: Any = 1, alpha: Any = 1, env: ShapeEnv
) -> TensorSpec:
    product = mm(x, y, env=env)
    _check(bias.dtype is x.dtype, "addmm of one dtype")
    _check(broadcast([bias.sizes, product.sizes], env) == product.sizes, "addmm's bias does not broadcast")
    return product


@spec_rule("aten.bmm.default")
def bmm(x: TensorSpec, y: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    """[b, n, k] x [b, k, m] -> [b, n, m]."""
    _check(x.rank == 3 and y.rank == 3 and x.dtype is y.dtype and x.device == y.device, "bmm of two batches")
    _check(same(x.sizes[0], y.sizes[0], env), "bmm needs equal batch sizes")
    _check(same(x.sizes[2], y.sizes[1], env), "bmm needs equal inner sizes")
    return fresh((x.sizes[0], x.sizes[1], y.sizes[2]), x)


@spec_rule("aten.baddbmm.default")
def baddbmm(
    bias: TensorSpec, x: TensorSpec, y: TensorSpec, *, beta: Any = 1, alpha: Any = 1, env: ShapeEnv
) -> TensorSpec:
    product = bmm(x, y, env=env)
    _check(bias.dtype is x.dtype, "baddbmm of one dtype")
    _check(broadcast([bias.sizes, product.sizes], env) == product.sizes, "baddbmm's bias does not broadcast")
    return product


@spec_rule("aten.mv.default")
def mv(x: TensorSpec, y: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    """[n, k] x [k] -> [n]."""
    _check(x.rank == 2 and y.rank == 1 and x.dtype is y.dtype, "mv of a matrix and a vector")
    _check(same(x.sizes[1], y.sizes[0], env), "mv needs equal inner sizes")
    return fresh(x.sizes[:1], x)


@spec_rule("aten.dot.default")
def dot(x: TensorSpec, y: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    """[k] x [k] -> []."""
    _check(x.rank == 1 and y.rank == 1 and x.dtype is y.dtype, "dot of two vectors")
    _check(same_sizes(x.sizes, y.sizes, env), "dot needs equal sizes")
    return fresh((), x)


@spec_rule("aten.linear.default")
def linear(x: TensorSpec, weight: TensorSpec, bias: TensorSpec | None = None, *, env: ShapeEnv) -> TensorSpec:
    """[..., k] x [m, k] -> [..., m]."""
    _check(x.rank >= 1 and weight.rank == 2 and x.dtype is weight.dtype, "linear of a tensor and a matrix")
    _check(same(x.sizes[-1], weight.sizes[1], env), "linear needs equal inner sizes")
    return fresh((*x.sizes[:-1], weight.sizes[0]), x)
