"""Specs of systems of linear equations on a CPU, with batches that broadcast, and of pseudo-inverses."""

from __future__ import annotations

from typing import Any

import torch

from fx_interface.symbols import ShapeEnv, maximum
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.rules.linear_algebra.factorizations import (
    column_major,
    determinant,
    matrices,
    nothing,
    row_major,
    squares,
    status,
)
from primtorch_decomps.shapes import Sizes, broadcast, same, same_sizes


def _check_alike(x: TensorSpec, other: TensorSpec) -> None:
    if x.dtype is not other.dtype or x.device != other.device:
        raise RuleMismatchError("two dtypes or devices")


def _of_both(x: TensorSpec, right: TensorSpec, left: bool, env: ShapeEnv) -> Sizes:
    """The sizes of the solution of ``x @ y = right`` (or ``y @ x = right``)."""
    _check_alike(x, right)
    batch, side = squares(x, env)
    other, rows, columns = matrices(right)
    if not same(rows if left else columns, side, env):
        raise RuleMismatchError("sides that do not fit")
    return (*broadcast([batch, other], env), rows, columns)


def _solution(x: TensorSpec, right: TensorSpec, left: bool, env: ShapeEnv) -> TensorSpec:
    """Column-major, and as its transpose where the unknown stands on the left."""
    sizes = _of_both(x, right, left, env)
    return column_major(sizes, right) if left else row_major(sizes, right)


@spec_rule("aten._linalg_solve_ex.default")
def solve(
    x: TensorSpec, right: TensorSpec, *, left: bool = True, check_errors: bool = False, env: ShapeEnv
) -> tuple[TensorSpec, TensorSpec, TensorSpec, TensorSpec]:
    """Solution, and what is kept for the gradient; ``right`` may be vectors."""
    batch, side = squares(x, env)
    _, factors, pivots = determinant(x, env=env)
    vector = right.rank == 1 or (right.rank == x.rank - 1 and same_sizes(right.sizes, x.sizes[:-1], env))
    if vector:
        _check_alike(x, right)
        if not left or not same(right.sizes[-1], side, env):
            raise RuleMismatchError("vectors that do not fit")
        sizes = (*batch, side)
        solution = column_major(sizes, right) if batch else row_major(sizes, right)
    else:
        solution = _solution(x, right, left, env)
    return solution, factors, pivots, status(batch, x)


@spec_rule("aten.linalg_solve_triangular.default")
def solve_triangular(
    x: TensorSpec,
    right: TensorSpec,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
    env: ShapeEnv,
) -> TensorSpec:
    return column_major(_of_both(x, right, left, env), right)


@spec_rule("aten.triangular_solve.default")
def triangular_solve(
    right: TensorSpec, x: TensorSpec, *args: Any, env: ShapeEnv, **kwargs: Any
) -> tuple[TensorSpec, TensorSpec]:
    """Solution and a copy of the coefficients."""
    sizes = _of_both(x, right, True, env)
    return column_major(sizes, right), column_major((*sizes[:-2], *x.sizes[-2:]), x)


@spec_rule("aten.cholesky_solve.default")
def cholesky_solve(right: TensorSpec, x: TensorSpec, upper: bool = False, *, env: ShapeEnv) -> TensorSpec:
    return column_major(_of_both(x, right, True, env), right)


@spec_rule("aten.linalg_lu_solve.default")
def lu_solve(
    x: TensorSpec,
    pivots: TensorSpec,
    right: TensorSpec,
    *,
    left: bool = True,
    adjoint: bool = False,
    env: ShapeEnv,
) -> TensorSpec:
    return _solution(x, right, left, env)


@spec_rule("aten.linalg_ldl_solve.default")
def ldl_solve(
    x: TensorSpec, pivots: TensorSpec, right: TensorSpec, *, hermitian: bool = False, env: ShapeEnv
) -> TensorSpec:
    return column_major(_of_both(x, right, True, env), right)


@spec_rule("aten.linalg_pinv.atol_rtol_tensor")
def pseudo_inverse(
    x: TensorSpec,
    *,
    atol: TensorSpec | None = None,
    rtol: TensorSpec | None = None,
    hermitian: bool = False,
    env: ShapeEnv,
) -> TensorSpec:
    batch, rows, columns = matrices(x)
    return row_major((*batch, columns, rows), x)


@spec_rule("aten.linalg_lstsq.default")
def least_squares(
    x: TensorSpec,
    right: TensorSpec,
    rcond: float | None = None,
    *,
    driver: str | None = None,
    env: ShapeEnv,
) -> tuple[TensorSpec, TensorSpec, TensorSpec, TensorSpec]:
    """Solution, residuals, rank and singular values: the last two drivers give residuals by rank."""
    _check_alike(x, right)
    batch, rows, columns = matrices(x)
    other, height, width = matrices(right)
    if driver not in (None, "gelsy") or right.rank != x.rank or not same(rows, height, env):
        raise RuleMismatchError("another driver, or vectors")
    if not same_sizes(batch, other, env):
        raise RuleMismatchError("batches that differ")
    memory = column_major((*batch, maximum(rows, columns), width), right)
    solution = TensorSpec((*batch, columns, width), memory.strides, right.dtype, right.device)
    return solution, nothing(x), row_major(batch, x, torch.int64), nothing(x)
