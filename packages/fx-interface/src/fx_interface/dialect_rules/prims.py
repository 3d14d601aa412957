"""The ``prims`` dialect's rules: what a primitive's operands must be, and what its result's shape and dtype are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch.fx import Node

from fx_interface.dialect_rules.aten import check_functional_call, is_pure_functional
from fx_interface.dialects.dialect import Context, Dialect, broken
from fx_interface.dialects.prims import PRIMS, PrimKind, PrimOp
from fx_interface.graph import size_value, spec_of_node
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import IntLike, floordiv
from fx_interface.tensor_spec import SymFloatSpec, SymSpec, TensorSpec

Shape: TypeAlias = tuple[IntLike, ...]
_GIVES_BOOL = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "logical_not", "any", "all"})


@dataclass(frozen=True, slots=True)
class _Call:
    node: Node
    context: Context

    def argument(self, index: int) -> Any:
        if index >= len(self.node.args):
            broken("FXI112", self.node, f"argument {index} is missing")
        return self.node.args[index]

    def tensor(self, index: int) -> TensorSpec:
        return self.tensor_spec(self.argument(index))

    def tensor_spec(self, value: Any) -> TensorSpec:
        spec = spec_of_node(value) if isinstance(value, Node) else None
        if not isinstance(spec, TensorSpec):
            broken("FXI112", self.node, f"{value!r} stands where a tensor is needed")
        return spec

    def sizes(self, index: int) -> Shape:
        return tuple(size_value(size) for size in self.argument(index))


_ShapeRule: TypeAlias = Callable[[_Call], Shape | None]


def _same(call: _Call) -> Shape:
    return call.tensor(0).sizes


def _broadcast_in_dim(call: _Call) -> Shape:
    operand, sizes, dims = call.tensor(0), call.sizes(1), call.argument(2)
    if len(dims) != operand.rank or list(dims) != sorted(set(dims)):
        broken("FXI112", call.node, f"dims {dims} do not place {operand.rank} axes in increasing order")
    for size, dim in zip(operand.sizes, dims, strict=True):
        if size != 1 and not call.context.equal_sizes(size, sizes[dim]):
            broken("FXI112", call.node, f"an axis of size {size} cannot become one of size {sizes[dim]}")
    return sizes


def _reshape(call: _Call) -> Shape:
    sizes = call.sizes(1)
    numel: IntLike = 1
    for size in sizes:
        numel = numel * size
    if not call.context.equal_sizes(numel, call.tensor(0).numel):
        broken("FXI112", call.node, f"reshape from {call.tensor(0).numel} elements to {numel}")
    return sizes


def _permute(call: _Call) -> Shape:
    operand, dims = call.tensor(0), call.argument(1)
    if sorted(dims) != list(range(operand.rank)):
        broken("FXI112", call.node, f"{dims} is no permutation of {operand.rank} axes")
    return tuple(operand.sizes[dim] for dim in dims)


def _slice(call: _Call) -> Shape:
    starts, limits, steps = call.sizes(1), call.sizes(2), call.sizes(3)
    if not len(starts) == len(limits) == len(steps) == call.tensor(0).rank:
        broken("FXI112", call.node, "a slice needs a start, limit and step for each axis")
    bounds = zip(starts, limits, steps, strict=True)
    return tuple(floordiv(limit - start + step - 1, step) for start, limit, step in bounds)


def _pad(call: _Call) -> Shape:
    widths = zip(call.sizes(1), call.tensor(0).sizes, call.sizes(2), strict=True)
    return tuple(low + size + high for low, size, high in widths)


def _cat(call: _Call) -> Shape:
    parts, dim = [call.tensor_spec(part) for part in call.argument(0)], call.argument(1)
    if not parts:
        broken("FXI112", call.node, "cat of no tensor")
    total: IntLike = 0
    for part in parts:
        total = total + part.sizes[dim]
        if not call.context.equal_shapes(_without(part.sizes, [dim]), _without(parts[0].sizes, [dim])):
            broken("FXI112", call.node, f"cat of {part} to {parts[0]}")
    return tuple(total if axis == dim else size for axis, size in enumerate(parts[0].sizes))


def _without(sizes: Shape, dims: Sequence[int]) -> Shape:
    return tuple(size for axis, size in enumerate(sizes) if axis not in dims)


def _reduce(call: _Call) -> Shape:
    operand, dims = call.tensor(0), call.argument(1)
    dims = [dims] if isinstance(dims, int) else list(dims)
    if len(set(dims)) != len(dims) or not all(0 <= dim < operand.rank for dim in dims):
        broken("FXI112", call.node, f"{dims} are not axes of a tensor of rank {operand.rank}")
    return _without(operand.sizes, dims)


_SHAPES: dict[str, _ShapeRule] = {
    "broadcast_in_dim": _broadcast_in_dim,
    "reshape": _reshape,
    "permute": _permute,
    "slice": _slice,
    "flip": _same,
    "pad": _pad,
    "cat": _cat,
    "index": lambda call: None,
    "gather": lambda call: call.tensor(2).sizes,
    "full": lambda call: call.sizes(0),
    "iota": lambda call: (size_value(call.argument(0)),),
    **{name: _reduce for name, op in PRIMS.items() if op.kind is PrimKind.REDUCTION},
}


def _pointwise(call: _Call) -> Shape:
    tensors = [arg for arg in call.node.args if _is_tensor(arg)]
    if not tensors:
        broken("FXI112", call.node, "a pointwise primitive needs a tensor operand")
    shape = call.tensor_spec(tensors[0]).sizes
    for tensor in tensors:
        if not call.context.equal_shapes(call.tensor_spec(tensor).sizes, shape):
            broken(
                "FXI112",
                call.node,
                f"operands of shapes {list(shape)} and {list(call.tensor_spec(tensor).sizes)}",
            )
    return shape


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Node) and isinstance(spec_of_node(value), TensorSpec)


def _operand_dtype(call: _Call) -> torch.dtype:
    operands = call.node.args[1:] if call.node.target is PRIMS["where"] else call.node.args
    specs = [call.tensor_spec(arg) for arg in operands if _is_tensor(arg)]
    if not specs:
        broken("FXI112", call.node, "no operand says the dtype of the result")
    for spec in specs:
        if spec.dtype != specs[0].dtype:
            broken("FXI112", call.node, f"operands of dtypes {specs[0].dtype} and {spec.dtype}")
    for arg in operands:
        if _number_rank(arg) > _dtype_rank(specs[0].dtype):
            broken("FXI112", call.node, f"the number {arg} would promote {specs[0].dtype}")
    return specs[0].dtype


def _number_rank(value: Any) -> int:
    if isinstance(value, Node):
        spec = spec_of_node(value)
        return 1 if isinstance(spec, SymSpec) else 2 if isinstance(spec, SymFloatSpec) else 0
    for rank, kind in enumerate((bool, int, float, complex)):
        if isinstance(value, kind):
            return rank
    return 0


def _dtype_rank(dtype: torch.dtype) -> int:
    if dtype.is_complex:
        return 3
    return 2 if dtype.is_floating_point else 0 if dtype is torch.bool else 1


def _result_dtype(call: _Call, op: PrimOp) -> torch.dtype | None:
    match op.name:
        case "convert_dtype":
            return _dtype(call.argument(1))
        case "full" | "iota":
            return _dtype(call.argument(len(call.node.args) - 2))
        case "argmax" | "argmin":
            return torch.int64
        case "cat":
            return call.tensor_spec(call.argument(0)[0]).dtype
        case "abs":
            return None if call.tensor(0).dtype.is_complex else call.tensor(0).dtype
    operand = _operand_dtype(call) if op.kind is PrimKind.POINTWISE else call.tensor(0).dtype
    return torch.bool if op.name in _GIVES_BOOL else operand


def _dtype(value: Any) -> torch.dtype | None:
    return value if isinstance(value, torch.dtype) else None


def _check_prim(node: Node, op: PrimOp, context: Context) -> None:
    if node.kwargs:
        broken("FXI112", node, "primitives take positional arguments only")
    call = _Call(node, context)
    stated = spec_of_node(node)
    if not isinstance(stated, TensorSpec):
        broken("FXI112", node, f"a primitive's result is a tensor, not {stated!r}")
    shape = _pointwise(call) if op.kind is PrimKind.POINTWISE else _SHAPES[op.name](call)
    if shape is not None and not context.equal_shapes(stated.sizes, shape):
        broken("FXI112", node, f"its spec says shape {list(stated.sizes)}, but it computes {list(shape)}")
    dtype = _result_dtype(call, op)
    if dtype is not None and stated.dtype != dtype:
        broken("FXI112", node, f"its spec says {stated.dtype}, but it computes {dtype}")


def _check_call(node: Node, context: Context) -> None:
    if node.op == "call_function" and isinstance(node.target, PrimOp):
        _check_prim(node, node.target, context)
    else:
        check_functional_call(node, context)


def _is_pure(node: Node) -> bool:
    return isinstance(node.target, PrimOp) or is_pure_functional(node)


PRIMS_DIALECT = Dialect("prims", _check_call, _is_pure)
"""The dialect that a code generator takes."""
