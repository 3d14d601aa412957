"""Formulas of mathematics at ordinary and at special numbers."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_operator

SPECIAL = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.5, float("inf"), -float("inf"), float("nan")])
DTYPES = [torch.float32, torch.float64, torch.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["angle", "special_entr"])
def test_one_operand(name: str, dtype: torch.dtype) -> None:
    check_operator(f"aten.{name}.default", SPECIAL.to(dtype))
    check_operator(f"aten.{name}.default", torch.arange(-2, 4))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["logaddexp2", "special_xlog1py"])
def test_two_operands(name: str, dtype: torch.dtype) -> None:
    rows, columns = SPECIAL.to(dtype), SPECIAL.to(dtype)[:, None]
    check_operator(f"aten.{name}.default", rows, columns)


@pytest.mark.parametrize("p", [1, 4])
def test_gamma_of_matrices(p: int) -> None:
    check_operator("aten.mvlgamma.default", torch.rand(3, 4) * 5 + 2, p)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("decimals", [0, 2, -1])
def test_rounding_to_decimals(decimals: int, dtype: torch.dtype) -> None:
    check_operator("aten.round.decimals", (torch.randn(20) * 30).to(dtype), decimals=decimals)
