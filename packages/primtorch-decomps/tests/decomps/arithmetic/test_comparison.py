"""Comparisons and logic."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_operator

X = torch.tensor([[0.0, 1.0, float("nan")], [2.0, -1.0, float("inf")]])
Y = torch.tensor([0.0, 2.0, 1.0])


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons(name: str) -> None:
    check_operator(f"aten.{name}.Tensor", X, Y)
    check_operator(f"aten.{name}.Tensor", X.bfloat16(), Y)
    check_operator(f"aten.{name}.Scalar", X.t(), 1)
    check_operator(f"aten.{name}.Scalar", torch.tensor([1, 2, 3]), 1.5)
    check_operator(f"aten.{name}.Tensor", torch.tensor([True, False]), torch.tensor([1, 0]))


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_logic(name: str) -> None:
    check_operator(f"aten.{name}.default", X, Y > 0)
    check_operator(f"aten.{name}.default", X, Y)
