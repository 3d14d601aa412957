"""Specs of systems of equations: batches that broadcast, unknowns on either side, vectors."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_open_spec

X = torch.eye(4).expand(2, 3, 4, 4).contiguous()
RIGHT = torch.rand(2, 3, 4, 6)
LEFT = torch.rand(2, 3, 6, 4)


@pytest.mark.parametrize("x", [X, X.mT.contiguous().mT, X[:1], X[0, 0]])
def test_equations(x: torch.Tensor) -> None:
    for right in (RIGHT, RIGHT.mT.contiguous().mT, RIGHT[0, 0]):
        check_open_spec("aten._linalg_solve_ex.default", x, right)
        check_open_spec("aten.linalg_solve_triangular.default", x, right, upper=True)
        check_open_spec("aten.triangular_solve.default", right, x)
        check_open_spec("aten.cholesky_solve.default", right, x)
    check_open_spec("aten._linalg_solve_ex.default", x, LEFT, left=False)
    check_open_spec("aten.linalg_solve_triangular.default", x, LEFT, upper=True, left=False)


def test_vectors() -> None:
    check_open_spec("aten._linalg_solve_ex.default", X, torch.rand(2, 3, 4))
    check_open_spec("aten._linalg_solve_ex.default", X[0, 0], torch.rand(4))
    check_open_spec("aten._linalg_solve_ex.default", X, torch.rand(4))


def test_factors() -> None:
    factors, pivots, _ = torch.linalg.lu_factor_ex(X)
    check_open_spec("aten.linalg_lu_solve.default", factors, pivots, RIGHT)
    check_open_spec("aten.linalg_lu_solve.default", factors, pivots, LEFT, left=False)
    check_open_spec("aten.linalg_lu_solve.default", factors, pivots, RIGHT, adjoint=True)
    check_open_spec("aten.linalg_ldl_solve.default", X, pivots, RIGHT)


@pytest.mark.parametrize("shape", [(5, 4), (4, 5)])
def test_least_squares(shape: tuple[int, int]) -> None:
    x = torch.eye(*shape).expand(2, 3, *shape)
    check_open_spec("aten.linalg_pinv.atol_rtol_tensor", x)
    check_open_spec("aten.linalg_lstsq.default", x, torch.rand(2, 3, shape[0], 2))
