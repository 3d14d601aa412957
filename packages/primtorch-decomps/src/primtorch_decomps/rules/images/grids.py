"""Specs of images that are looked up at the points of a grid, or turned by right angles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fx_interface.symbols import IntLike, ShapeEnv
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.rules.linear_algebra.factorizations import row_major
from primtorch_decomps.shapes import Sizes, canonical_dims, same
from primtorch_decomps.strides import preserved_strides


def _check(x: TensorSpec, grid: TensorSpec, env: ShapeEnv) -> None:
    if x.rank != grid.rank or x.rank not in (4, 5) or x.device.type != "cpu" or 0 in x.sizes[2:]:
        raise RuleMismatchError("an image and a grid of one rank")
    if x.dtype is not grid.dtype or not same(x.sizes[0], grid.sizes[0], env):
        raise RuleMismatchError("an image and a grid of one dtype and batch")
    if not same(grid.sizes[-1], x.rank - 2, env):
        raise RuleMismatchError("points of another dimension")


@spec_rule("aten.grid_sampler_2d.default", "aten.grid_sampler_3d.default")
def sampled(x: TensorSpec, grid: TensorSpec, *options: Any, env: ShapeEnv) -> TensorSpec:
    """[N, C, ...], points [N, *places, rank] -> [N, C, *places]."""
    _check(x, grid, env)
    return row_major((*x.sizes[:2], *grid.sizes[1:-1]), x)


@spec_rule("aten.grid_sampler_2d_backward.default", "aten.grid_sampler_3d_backward.default")
def sampled_backward(
    grad: TensorSpec,
    x: TensorSpec,
    grid: TensorSpec,
    interpolation: int,
    padding: int,
    align_corners: bool,
    output_mask: Sequence[bool],
    *,
    env: ShapeEnv,
) -> tuple[TensorSpec | None, TensorSpec]:
    _check(x, grid, env)
    return row_major(x.sizes, x) if output_mask[0] else None, row_major(grid.sizes, grid)


@spec_rule("aten.affine_grid_generator.default")
def affine_grid(
    theta: TensorSpec, size: Sequence[IntLike], align_corners: bool, *, env: ShapeEnv
) -> TensorSpec:
    """Maps [N, rank, rank + 1] and an image's size -> points [N, *places, rank]."""
    if len(size) not in (4, 5) or theta.rank != 3 or theta.device.type != "cpu":
        raise RuleMismatchError("maps of images or volumes")
    if not same(theta.sizes[0], size[0], env):
        raise RuleMismatchError("a map for each image")
    return row_major((size[0], *size[2:], len(size) - 2), theta)


@spec_rule("aten.rot90.default")
def turned(x: TensorSpec, k: int = 1, dims: Sequence[int] = (0, 1), *, env: ShapeEnv) -> TensorSpec:
    """By ``k`` right angles in the plane of two dimensions."""
    if len(canonical_dims(dims, x.rank, empty_is_all=False)) != 2 or not isinstance(k, int):
        raise RuleMismatchError("two dimensions make a plane")
    if k % 4 == 0:
        return row_major(x.sizes, x)
    order = list(range(x.rank))
    if k % 2:
        one, other = (dim % x.rank for dim in dims)
        order[one], order[other] = other, one
    strides = preserved_strides(x.sizes, x.strides, env)  # flipped, then transposed
    return TensorSpec(_ordered(x.sizes, order), _ordered(strides, order), x.dtype, x.device)


def _ordered(part: Sizes, order: Sequence[int]) -> tuple[IntLike, ...]:
    return tuple(part[dim] for dim in order)
