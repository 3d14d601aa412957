"""Comparisons and boolean logic; results are bool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primtorch_decomps import promotion
from primtorch_decomps.pointwise import Kind, pointwise
from primtorch_decomps.prims import PrimTensor, ops


def _comparison(name: str) -> Callable[[Any, Any], PrimTensor]:
    primitive: Callable[[Any, Any], PrimTensor] = getattr(ops, name)

    def formula(x: Any, y: Any) -> PrimTensor:
        return primitive(x, y)

    return formula


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _names = (f"aten.{_name}.Tensor", f"aten.{_name}.Scalar")
    pointwise(*_names, kind=Kind.BOOLEAN, operands=2)(_comparison(_name))


def truth(x: Any) -> Any:
    """Nonzero elements (NaN too) as bool."""
    if not isinstance(x, PrimTensor):
        return bool(x)
    return x if promotion.category(x.dtype) == 0 else ops.ne(x, promotion.cast_number(0, x.dtype))


@pointwise("aten.logical_and.default", kind=Kind.BOOLEAN, operands=2)
def logical_and(x: Any, y: Any) -> PrimTensor:
    return ops.bitwise_and(truth(x), truth(y))


@pointwise("aten.logical_or.default", kind=Kind.BOOLEAN, operands=2)
def logical_or(x: Any, y: Any) -> PrimTensor:
    return ops.bitwise_or(truth(x), truth(y))


@pointwise("aten.logical_xor.default", kind=Kind.BOOLEAN, operands=2)
def logical_xor(x: Any, y: Any) -> PrimTensor:
    return ops.bitwise_xor(truth(x), truth(y))
