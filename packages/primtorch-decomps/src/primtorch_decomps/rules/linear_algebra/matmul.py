"""Specs of matrix products; they are library calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fx_interface.symbols import IntLike, ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.shapes import broadcast, required, same_sizes


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
    _check(required(x.sizes[1], y.sizes[0], env), "mm needs equal inner sizes")
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
    _check(required(x.sizes[0], y.sizes[0], env), "bmm needs equal batch sizes")
    _check(required(x.sizes[2], y.sizes[1], env), "bmm needs equal inner sizes")
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
    _check(required(x.sizes[1], y.sizes[0], env), "mv needs equal inner sizes")
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
    _check(required(x.sizes[-1], weight.sizes[1], env), "linear needs equal inner sizes")
    return fresh((*x.sizes[:-1], weight.sizes[0]), x)


@spec_rule("aten.addmv.default")
def addmv(
    bias: TensorSpec, x: TensorSpec, y: TensorSpec, *, beta: Any = 1, alpha: Any = 1, env: ShapeEnv
) -> TensorSpec:
    product = mv(x, y, env=env)
    _check(bias.dtype is x.dtype, "addmv of one dtype")
    _check(broadcast([bias.sizes, product.sizes], env) == product.sizes, "addmv's bias does not broadcast")
    return product


@spec_rule("aten.addbmm.default")
def addbmm(
    bias: TensorSpec, x: TensorSpec, y: TensorSpec, *, beta: Any = 1, alpha: Any = 1, env: ShapeEnv
) -> TensorSpec:
    """The products of [b, n, k] and [b, k, m] are added up -> [n, m]."""
    _, rows, columns = bmm(x, y, env=env).sizes
    _check(bias.dtype is x.dtype, "addbmm of one dtype")
    _check(
        broadcast([bias.sizes, (rows, columns)], env) == (rows, columns), "addbmm's bias does not broadcast"
    )
    return fresh((rows, columns), x)


@spec_rule("aten.vdot.default")
def vdot(x: TensorSpec, y: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    return dot(x, y, env=env)


@spec_rule("aten._trilinear.default")
def trilinear(
    x: TensorSpec,
    weight: TensorSpec,
    y: TensorSpec,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
    *,
    env: ShapeEnv,
) -> TensorSpec:
    """The product of three tensors, each with dimensions of one element put in, summed over ``sumdim``."""
    given = ((x, expand1), (weight, expand2), (y, expand3))
    _check(all(t.dtype is x.dtype and t.device == x.device for t, _ in given), "trilinear of one dtype")
    sizes = broadcast([_with_ones(t.sizes, places) for t, places in given], env)
    return fresh([size for dim, size in enumerate(sizes) if dim not in sumdim], x)


def _with_ones(sizes: Sequence[IntLike], places: Sequence[int]) -> tuple[IntLike, ...]:
    rest = iter(sizes)
    return tuple(1 if dim in places else next(rest) for dim in range(len(sizes) + len(places)))
