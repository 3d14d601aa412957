"""Specs of matrix factorizations: square, tall and wide matrices, in batches, row- and column-major."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from primtorch_decomps.testing import check_open_spec

SQUARE: dict[str, tuple[Any, ...]] = {
    "linalg_inv_ex.default": (),
    "linalg_cholesky_ex.default": (),
    "cholesky.default": (),
    "cholesky_inverse.default": (),
    "linalg_ldl_factor_ex.default": (),
    "_linalg_det.default": (),
    "_linalg_slogdet.default": (),
    "_linalg_eigh.default": ("L", True),
    "linalg_eig.default": (),
    "_linalg_eigvals.default": (),
}
ANY: dict[str, tuple[Any, ...]] = {
    "linalg_lu_factor_ex.default": (),
    "linalg_lu.default": (),
    "geqrf.default": (),
}


def _matrices(rows: int, columns: int) -> list[torch.Tensor]:
    x = torch.eye(rows, columns).expand(2, 3, rows, columns).contiguous()
    return [x, x.mT.contiguous().mT, x[0, 0], x.transpose(0, 1)]


@pytest.mark.parametrize("name", SQUARE)
def test_square_matrices(name: str) -> None:
    for x in _matrices(4, 4):
        for number in (x, x.to(torch.complex128)):
            check_open_spec(f"aten.{name}", number, *SQUARE[name])


@pytest.mark.parametrize("name", ANY)
@pytest.mark.parametrize("shape", [(5, 4), (4, 5), (4, 4)])
def test_matrices_of_any_shape(name: str, shape: tuple[int, int]) -> None:
    for x in _matrices(*shape):
        check_open_spec(f"aten.{name}", x, *ANY[name])


@pytest.mark.parametrize("shape", [(5, 4), (4, 5)])
def test_what_is_asked_for(shape: tuple[int, int]) -> None:
    for x in _matrices(*shape):
        for full, vectors in ((True, True), (False, True), (False, False)):
            check_open_spec("aten._linalg_svd.default", x, full, vectors)
        for mode in ("reduced", "complete", "r"):
            check_open_spec("aten.linalg_qr.default", x, mode)
        factors, pivots, _ = torch.linalg.lu_factor_ex(x)
        for flags in ((True, True), (True, False), (False, True)):
            check_open_spec("aten.lu_unpack.default", factors, pivots, *flags)


def test_reflectors() -> None:
    for x in _matrices(5, 4):
        tau = torch.rand(*x.shape[:-2], 3)
        check_open_spec("aten.linalg_householder_product.default", x, tau)
        tau, other = torch.rand(*x.shape[:-2], 4), torch.rand(*x.shape[:-2], 5, 7)
        check_open_spec("aten.ormqr.default", x, tau, other)
        check_open_spec("aten.ormqr.default", x, tau, other.mT, False)
