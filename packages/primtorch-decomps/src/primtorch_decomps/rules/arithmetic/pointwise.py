"""Specs of pointwise operators that are library calls: special functions, and what looks at the bits of a number."""

from __future__ import annotations

import torch

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.pointwise import Kind, pointwise_rule, pointwise_spec
from primtorch_decomps.promotion import is_integral, result_type
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.strides import any_zero

_UNARY_FLOAT = (
    *("digamma", "erfinv", "i0", "special_i0e", "special_i1", "special_i1e", "special_erfcx"),
    *("special_ndtri", "special_log_ndtr", "special_bessel_j0", "special_bessel_j1", "special_bessel_y0"),
    *("special_bessel_y1", "special_modified_bessel_i0", "special_modified_bessel_i1", "special_airy_ai"),
    *("special_modified_bessel_k0", "special_modified_bessel_k1", "special_spherical_bessel_j0"),
    *("special_scaled_modified_bessel_k0", "special_scaled_modified_bessel_k1"),
)
_BINARY_FLOAT = ("special_zeta", "copysign.Tensor", "copysign.Scalar")
_POLYNOMIALS = (
    *(f"chebyshev_polynomial_{kind}" for kind in "tuvw"),
    *(f"shifted_chebyshev_polynomial_{kind}" for kind in "tuvw"),
    *("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"),
)
_BINARY = ("gcd", "lcm", "nextafter", "igamma", "igammac")

for _name in _UNARY_FLOAT:
    spec_rule(f"aten.{_name}.default")(pointwise_rule(Kind.FLOAT, 1))
for _name in _BINARY_FLOAT:
    spec_rule(f"aten.{_name}" if "." in _name else f"aten.{_name}.default")(pointwise_rule(Kind.FLOAT, 2))
for _name in _POLYNOMIALS:
    spec_rule(f"aten.special_{_name}.default")(pointwise_rule(Kind.FLOAT, 2))
for _name in _BINARY:
    spec_rule(f"aten.{_name}.default")(pointwise_rule(Kind.ARITHMETIC, 2))
spec_rule("aten.signbit.default")(pointwise_rule(Kind.BOOLEAN, 1))


@spec_rule("aten.polygamma.default")
def polygamma(n: int, x: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    return pointwise_spec([x], torch.get_default_dtype() if not x.dtype.is_floating_point else x.dtype, env)


@spec_rule("aten.frexp.Tensor")
def mantissa_and_exponent(x: TensorSpec, *, env: ShapeEnv) -> tuple[TensorSpec, TensorSpec]:
    if not x.dtype.is_floating_point or any_zero(x.sizes):
        raise RuleMismatchError("parts of an integer, or of nothing")
    return pointwise_spec([x], x.dtype, env), pointwise_spec([x], torch.int32, env)


@spec_rule("aten.ldexp.Tensor")
def from_mantissa_and_exponent(x: TensorSpec, exponent: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    if not x.dtype.is_floating_point or not (exponent.dtype is x.dtype or is_integral(exponent.dtype)):
        raise RuleMismatchError("of other dtypes")
    if exponent.rank and not x.rank and x.dtype is not torch.get_default_dtype():
        raise RuleMismatchError("a power of two of the default dtype")
    return pointwise_spec([x, exponent], result_type([x, exponent]), env)
