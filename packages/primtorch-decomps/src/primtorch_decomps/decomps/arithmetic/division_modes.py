"""Division with a rounding mode: true, floor or truncated.

Of half types eager computes a quotient in float32 only if the divisor is one number. Elsewhere each step is rounded to
the half type: 10.99 of bfloat16 is 11, before it is truncated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from fx_interface.symbols import Expr, Relation, ShapeEnv
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps import promotion
from primtorch_decomps.pointwise import Kind, decomposition_of, pointwise_rule
from primtorch_decomps.prims import PrimTensor, current_trace, ops
from primtorch_decomps.registry import decomposes

_TRUE = decomposition_of(lambda x, y: ops.div(x, y), Kind.FLOAT, 2)
_ROUNDED = {
    "floor": decomposition_of(lambda x, y: ops.floor_div(x, y), Kind.ARITHMETIC, 2, stored=(0,)),
    "trunc": decomposition_of(lambda x, y: ops.trunc_div(x, y), Kind.ARITHMETIC, 2, stored=(0,)),
}


def _div_mode_spec(x: TensorSpec, y: Any, *, rounding_mode: str | None, env: ShapeEnv) -> TensorSpec:
    rule = pointwise_rule(Kind.FLOAT if rounding_mode is None else Kind.ARITHMETIC, 2)
    spec = rule(x, y, env=env)
    assert isinstance(spec, TensorSpec)
    return spec


@decomposes("aten.div.Tensor_mode", "aten.div.Scalar_mode", rule=_div_mode_spec)
def div_mode(x: Any, y: Any, *, rounding_mode: str | None) -> PrimTensor:
    if rounding_mode is None:
        result = _TRUE(x, y)
    elif (half := _rounding_dtype(x, y)) is not None:
        result = _in_steps(rounding_mode, half)(x, y)
    else:
        result = _ROUNDED[rounding_mode](x, y)
    assert isinstance(result, PrimTensor)
    return result


def _rounding_dtype(x: Any, y: Any) -> torch.dtype | None:
    """The half type to which each step is rounded; None where none is."""
    if type(y) is not PrimTensor:
        return None
    tensors, numbers = ([x, y], []) if type(x) is PrimTensor else ([y], [x])
    common = promotion.result_type(tensors, numbers)
    if promotion.compute_dtype(common) is common or _is_one_number(y, current_trace().env):
        return None
    return common


def _is_one_number(divisor: PrimTensor, env: ShapeEnv) -> bool:
    """A GPU's kernels look at numbers on the CPU alone."""
    if divisor.device.type != "cpu":
        return False
    return all(size == 1 if isinstance(size, int) else _is_one(size, env) for size in divisor.sizes)


def _is_one(size: Expr, env: ShapeEnv) -> bool:
    return env.known(Relation("<", 1, size)) is not True and env.decide(Relation("==", size, 1))


@functools.cache
def _in_steps(rounding_mode: str, half: torch.dtype) -> Callable[..., Any]:
    def rounded(value: PrimTensor) -> PrimTensor:
        return ops.convert_dtype(ops.convert_dtype(value, half), torch.float32)

    def truncated(x: PrimTensor, y: PrimTensor) -> PrimTensor:
        return ops.trunc(rounded(ops.div(x, y)))

    def floored(x: PrimTensor, y: PrimTensor) -> PrimTensor:
        ratio, rest = rounded(ops.div(x, y)), ops.fmod(x, y)
        overflows = ops.bitwise_and(ops.isinf(ratio), ops.logical_not(ops.isinf(x)))
        quotient = rounded(ops.div(ops.where(overflows, x, rounded(ops.sub(x, rest))), y))
        below = ops.bitwise_and(ops.ne(rest, 0.0), ops.bitwise_xor(ops.lt(y, 0.0), ops.lt(rest, 0.0)))
        quotient = ops.where(below, rounded(ops.sub(quotient, 1.0)), quotient)
        result = ops.floor(quotient)
        is_next = ops.gt(rounded(ops.sub(quotient, result)), 0.5)
        result = ops.where(is_next, rounded(ops.add(result, 1.0)), result)
        result = ops.where(ops.eq(quotient, 0.0), ops.mul(ratio, 0.0), result)
        return ops.where(ops.eq(y, 0.0), ratio, result)

    formula = {"floor": floored, "trunc": truncated}[rounding_mode]
    return decomposition_of(formula, Kind.ARITHMETIC, 2, stored=(0, 1))
