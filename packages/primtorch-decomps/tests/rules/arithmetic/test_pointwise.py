"""Specs of pointwise operators that stay with the library."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_open_spec, check_operator, check_spec

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


@pytest.mark.parametrize(
    "name", ["special_airy_ai", "special_modified_bessel_k0", "special_spherical_bessel_j0"]
)
def test_special_functions_of_any_size(name: str) -> None:
    check_open_spec(f"aten.{name}.default", X)
    check_open_spec(f"aten.{name}.default", torch.arange(3))


def test_polynomials_and_parts_of_numbers_of_any_size() -> None:
    for name in ("chebyshev_polynomial_t", "hermite_polynomial_he", "legendre_polynomial_p"):
        check_open_spec(f"aten.special_{name}.default", X, torch.arange(4))
    check_open_spec("aten.frexp.Tensor", X)
    check_open_spec("aten.ldexp.Tensor", X, torch.arange(4))
    check_open_spec("aten.ldexp.Tensor", X.half(), X.half())


def test_parts_of_no_numbers() -> None:
    check_spec(torch.ops.aten.frexp.Tensor, (torch.rand(1, 0, 6)[..., ::2],), {})
