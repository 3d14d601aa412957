"""Specs of pointwise operators that stay with the library."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_operator

X = torch.rand(4, 5).t()


@pytest.mark.parametrize("name", ["digamma", "erfinv", "i0", "signbit"])
def test_one_operand(name: str) -> None:
    check_operator(f"aten.{name}.default", X, library_call=True)
    check_operator(f"aten.{name}.default", torch.arange(3), library_call=True)


@pytest.mark.parametrize("name", ["nextafter", "igamma"])
def test_two_operands(name: str) -> None:
    check_operator(f"aten.{name}.default", X, torch.rand(4), library_call=True)


def test_others() -> None:
    check_operator("aten.gcd.default", torch.arange(4), torch.arange(4).int(), library_call=True)
    check_operator("aten.copysign.Tensor", torch.arange(4), torch.arange(4), library_call=True)
    check_operator("aten.copysign.Scalar", X, -1.0, library_call=True)
    check_operator("aten.polygamma.default", 2, X, library_call=True)
