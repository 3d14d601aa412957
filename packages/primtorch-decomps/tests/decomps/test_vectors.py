"""Distances, products of vectors, rows of a largest norm."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_operator


@pytest.mark.parametrize("p", [0, 1, 2, 3.5, float("inf")])
def test_distances(p: float) -> None:
    check_operator("aten.dist.default", torch.randn(3, 4), torch.randn(4), p)


@pytest.mark.parametrize("p", [1, 2])
def test_rows_are_cut_down(p: float) -> None:
    check_operator("aten.renorm.default", torch.randn(4, 3, 5), p, 1, 2.0)


def test_cross_products() -> None:
    check_operator("aten.linalg_cross.default", torch.randn(4, 3), torch.randn(1, 3))
    check_operator(
        "aten.linalg_cross.default", torch.randn(3, 4).bfloat16(), torch.randn(3, 4).bfloat16(), dim=0
    )


@pytest.mark.parametrize("beta, alpha", [(1, 1), (0, 2), (0.5, -1.5)])
def test_outer_products(beta: float, alpha: float) -> None:
    column, row = torch.randn(3), torch.randn(4)
    for x in (torch.randn(3, 4), torch.randn(4), torch.full((3, 4), float("nan"))):
        check_operator("aten.addr.default", x, column, row, beta=beta, alpha=alpha)
