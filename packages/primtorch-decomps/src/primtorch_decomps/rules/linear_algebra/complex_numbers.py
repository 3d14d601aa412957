"""Specs of what takes complex numbers apart, puts them together, or marks them as conjugated."""

from __future__ import annotations

from dataclasses import replace

from fx_interface.symbols import ShapeEnv, floordiv, mod
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.pointwise import pointwise_spec
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.shapes import same
from primtorch_decomps.spec_inference.complex_numbers import COMPLEX, REAL


@spec_rule("aten.view_as_real.default")
def view_as_real(x: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    strides = (*(2 * stride for stride in x.strides), 1)
    return replace(x, sizes=(*x.sizes, 2), strides=strides, dtype=REAL[x.dtype])


@spec_rule("aten.view_as_complex.default")
def view_as_complex(x: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    outer = x.strides[:-1]
    if not x.rank or not same(x.sizes[-1], 2, env) or not same(x.strides[-1], 1, env):
        raise RuleMismatchError("pairs of numbers")
    if not all(same(mod(stride, 2), 0, env) for stride in outer):
        raise RuleMismatchError("pairs of numbers")
    strides = tuple(floordiv(stride, 2) for stride in outer)
    return replace(x, sizes=x.sizes[:-1], strides=strides, dtype=COMPLEX[x.dtype])


@spec_rule("aten._conj.default")
def marked(x: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    return x


@spec_rule("aten.complex.default", "aten.polar.default")
def from_parts(one: TensorSpec, other: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    if one.dtype is not other.dtype:
        raise RuleMismatchError("parts of two dtypes")
    return pointwise_spec([one, other], COMPLEX[one.dtype], env)
