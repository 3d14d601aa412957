"""Division with a rounding mode: true, floor or truncated."""

from __future__ import annotations

from typing import Any

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps.pointwise import Kind, decomposition_of, pointwise_rule
from primtorch_decomps.prims import PrimTensor, ops
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
def div_mode(x: PrimTensor, y: Any, *, rounding_mode: str | None) -> Any:
    return _TRUE(x, y) if rounding_mode is None else _ROUNDED[rounding_mode](x, y)
