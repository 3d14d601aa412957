"""Specs of matrix factorizations on a CPU: LAPACK has matrices in column-major order, whatever the input's layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from fx_interface.symbols import IntLike, ShapeEnv, minimum
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.shapes import same
from primtorch_decomps.spec_inference.complex_numbers import COMPLEX, REAL


def row_major(sizes: Sequence[IntLike], like: TensorSpec, dtype: torch.dtype | None = None) -> TensorSpec:
    """A row-major result."""
    sizes = tuple(sizes)
    return TensorSpec(sizes, contiguous_strides(sizes), dtype or like.dtype, like.device)


def column_major(sizes: Sequence[IntLike], like: TensorSpec, dtype: torch.dtype | None = None) -> TensorSpec:
    """Matrices of which each is column-major, one after the other."""
    *batch, rows, columns = sizes
    *outer, column, row = contiguous_strides((*batch, columns, rows))
    return TensorSpec(tuple(sizes), (*outer, row, column), dtype or like.dtype, like.device)


def nothing(like: TensorSpec) -> TensorSpec:
    """What stands for a result that was not asked for."""
    return TensorSpec((0,), (1,), like.dtype, like.device)


def matrices(x: TensorSpec) -> tuple[tuple[IntLike, ...], IntLike, IntLike]:
    """Batch, rows and columns of what LAPACK can be given."""
    if x.rank < 2 or x.device.type != "cpu" or not (x.dtype.is_floating_point or x.dtype.is_complex):
        raise RuleMismatchError("no matrices of numbers on a CPU")
    if any(isinstance(size, int) and size == 0 for size in x.sizes):
        raise RuleMismatchError("matrices without elements")
    return x.sizes[:-2], x.sizes[-2], x.sizes[-1]


def squares(x: TensorSpec, env: ShapeEnv) -> tuple[tuple[IntLike, ...], IntLike]:
    """Batch and side of square matrices."""
    batch, rows, columns = matrices(x)
    if not same(rows, columns, env):
        raise RuleMismatchError("matrices that are not square")
    return batch, rows


def status(batch: Sequence[IntLike], like: TensorSpec) -> TensorSpec:
    """Whether LAPACK succeeded, for each matrix."""
    return row_major(batch, like, torch.int32)


@spec_rule("aten._linalg_check_errors.default")
def checked(info: TensorSpec, api_name: str, *, is_matrix: bool, env: ShapeEnv) -> None:
    """Raises when the program runs."""
    return


@spec_rule("aten.linalg_inv_ex.default")
def inverse(x: TensorSpec, *, check_errors: bool = False, env: ShapeEnv) -> tuple[TensorSpec, TensorSpec]:
    batch, _ = squares(x, env)
    return column_major(x.sizes, x), status(batch, x)


@spec_rule("aten.linalg_cholesky_ex.default")
def cholesky_ex(
    x: TensorSpec, *, upper: bool = False, check_errors: bool = False, env: ShapeEnv
) -> tuple[TensorSpec, TensorSpec]:
    batch, _ = squares(x, env)
    return column_major(x.sizes, x), status(batch, x)


@spec_rule("aten.cholesky.default", "aten.cholesky_inverse.default")
def cholesky(x: TensorSpec, upper: bool = False, *, env: ShapeEnv) -> TensorSpec:
    squares(x, env)
    return column_major(x.sizes, x)


@spec_rule("aten.linalg_lu_factor_ex.default")
def lu_factor(
    x: TensorSpec, *, pivot: bool = True, check_errors: bool = False, env: ShapeEnv
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    batch, rows, columns = matrices(x)
    pivots = row_major((*batch, minimum(rows, columns)), x, torch.int32)
    return column_major(x.sizes, x), pivots, status(batch, x)


@spec_rule("aten.linalg_lu.default")
def lu(x: TensorSpec, *, pivot: bool = True, env: ShapeEnv) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    """Permutation, lower and upper triangle."""
    batch, rows, columns = matrices(x)
    if not pivot:
        raise RuleMismatchError("pivoting is left out on GPUs only")
    inner = minimum(rows, columns)
    permutation = row_major((*batch, rows, rows), x)
    return permutation, row_major((*batch, rows, inner), x), row_major((*batch, inner, columns), x)


@spec_rule("aten.lu_unpack.default")
def lu_unpack(
    x: TensorSpec,
    pivots: TensorSpec,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
    *,
    env: ShapeEnv,
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    permutation, lower, upper = lu(x, env=env)
    return (
        permutation if unpack_pivots else nothing(x),
        lower if unpack_data else nothing(x),
        upper if unpack_data else nothing(x),
    )


@spec_rule("aten.linalg_ldl_factor_ex.default")
def ldl_factor(
    x: TensorSpec, *, hermitian: bool = False, check_errors: bool = False, env: ShapeEnv
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    batch, side = squares(x, env)
    return column_major(x.sizes, x), row_major((*batch, side), x, torch.int32), status(batch, x)


@spec_rule("aten._linalg_det.default")
def determinant(x: TensorSpec, *, env: ShapeEnv) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    batch, side = squares(x, env)
    return row_major(batch, x), column_major(x.sizes, x), row_major((*batch, side), x, torch.int32)


@spec_rule("aten._linalg_slogdet.default")
def sign_and_logarithm(
    x: TensorSpec, *, env: ShapeEnv
) -> tuple[TensorSpec, TensorSpec, TensorSpec, TensorSpec]:
    sign, factors, pivots = determinant(x, env=env)
    return sign, row_major(sign.sizes, x, REAL.get(x.dtype)), factors, pivots


@spec_rule("aten._linalg_svd.default")
def svd(
    x: TensorSpec,
    full_matrices: bool = False,
    compute_uv: bool = True,
    *,
    driver: str | None = None,
    env: ShapeEnv,
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    batch, rows, columns = matrices(x)
    inner = minimum(rows, columns)
    values = row_major((*batch, inner), x, REAL.get(x.dtype))
    if not compute_uv:
        return nothing(x), values, nothing(x)
    left, right = (rows, columns) if full_matrices else (inner, inner)
    return column_major((*batch, rows, left), x), values, column_major((*batch, right, columns), x)


@spec_rule("aten._linalg_eigh.default")
def eigh(
    x: TensorSpec, uplo: str = "L", compute_v: bool = True, *, env: ShapeEnv
) -> tuple[TensorSpec, TensorSpec]:
    batch, side = squares(x, env)
    values = row_major((*batch, side), x, REAL.get(x.dtype))
    return values, column_major(x.sizes, x) if compute_v else nothing(x)


@spec_rule("aten.linalg_eig.default")
def eig(x: TensorSpec, *, env: ShapeEnv) -> tuple[TensorSpec, TensorSpec]:
    made = COMPLEX.get(x.dtype, x.dtype)
    return eigenvalues(x, env=env), column_major(x.sizes, x, made)


@spec_rule("aten._linalg_eigvals.default")
def eigenvalues(x: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    batch, side = squares(x, env)
    return row_major((*batch, side), x, COMPLEX.get(x.dtype, x.dtype))


@spec_rule("aten.linalg_qr.default")
def qr(x: TensorSpec, mode: str = "reduced", *, env: ShapeEnv) -> tuple[TensorSpec, TensorSpec]:
    batch, rows, columns = matrices(x)
    if mode not in ("reduced", "complete", "r"):
        raise RuleMismatchError("another mode")
    inner = rows if mode == "complete" else minimum(rows, columns)
    triangle = column_major((*batch, inner, columns), x)
    return nothing(x) if mode == "r" else column_major((*batch, rows, inner), x), triangle


@spec_rule("aten.geqrf.default")
def reflectors(x: TensorSpec, *, env: ShapeEnv) -> tuple[TensorSpec, TensorSpec]:
    batch, rows, columns = matrices(x)
    return column_major(x.sizes, x), row_major((*batch, minimum(rows, columns)), x)


@spec_rule("aten.linalg_householder_product.default")
def householder_product(x: TensorSpec, tau: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    matrices(x)
    return column_major(x.sizes, x)


@spec_rule("aten.ormqr.default")
def by_reflectors(
    x: TensorSpec, tau: TensorSpec, other: TensorSpec, *args: Any, env: ShapeEnv, **kwargs: Any
) -> TensorSpec:
    matrices(x)
    matrices(other)
    return column_major(other.sizes, other)
