"""Specs of pointwise operators that are library calls: special functions, and what looks at the bits of a number."""

from __future__ import annotations

import torch

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps.pointwise import Kind, pointwise_rule, pointwise_spec
from primtorch_decomps.registry import spec_rule

_UNARY_FLOAT = (
    *("digamma", "erfinv", "i0", "special_i0e", "special_i1", "special_i1e", "special_erfcx"),
    *("special_ndtri", "special_log_ndtr", "special_bessel_j0", "special_bessel_j1", "special_bessel_y0"),
)
_BINARY_FLOAT = ("special_zeta", "copysign.Tensor", "copysign.Scalar")
_BINARY = ("gcd", "lcm", "nextafter", "igamma", "igammac")

for _name in _UNARY_FLOAT:
    spec_rule(f"aten.{_name}.default")(pointwise_rule(Kind.FLOAT, 1))
for _name in _BINARY_FLOAT:
    spec_rule(f"aten.{_name}" if "." in _name else f"aten.{_name}.default")(pointwise_rule(Kind.FLOAT, 2))
for _name in _BINARY:
    spec_rule(f"aten.{_name}.default")(pointwise_rule(Kind.ARITHMETIC, 2))
spec_rule("aten.signbit.default")(pointwise_rule(Kind.BOOLEAN, 1))


@spec_rule("aten.polygamma.default")
def polygamma(n: int, x: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    return pointwise_spec([x], torch.get_default_dtype() if not x.dtype.is_floating_point else x.dtype, env)
