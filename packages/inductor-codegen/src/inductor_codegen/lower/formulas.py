"""The primitives: which view or formula each one is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from fx_interface.dialects.prims import PrimKind, PrimOp
from fx_interface.symbols import IntLike, floordiv
from fx_interface.tensor_spec import TensorSpec
from inductor_codegen.lower.values import (
    Argument,
    Cat,
    Fill,
    Formula,
    Gather,
    Iota,
    Number,
    Operand,
    Pad,
    Pointwise,
    Reduction,
    RuntimeFloat,
)
from inductor_codegen.lower.views import Broadcast, Flip, Permute, Sizes, Slice, View, reshape

COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "logical_not"})
"""Primitives that compute in their operands' dtype though the result is a bool."""


def view_of(name: str, operand: Operand, *args: Any, **kwargs: Any) -> tuple[Operand, View]:
    """The view that a VIEW primitive is. ``args`` are as its schema says, sizes as ``Number`` or int."""
    match name:
        case "broadcast_in_dim":
            return operand, _broadcast(operand, *args, **kwargs)
        case "reshape":
            return operand, reshape(operand.sizes, sizes_of(*args, **kwargs))
        case "permute":
            return operand, _permute(operand, *args, **kwargs)
        case "slice":
            return operand, _slice(*args, **kwargs)
        case "flip":
            return operand, _flip(operand, *args, **kwargs)
    raise AssertionError(f"no view for primitive {name}")


def _broadcast(operand: Operand, sizes: Sequence[Any], dims: Sequence[int]) -> View:
    return Broadcast(operand.sizes, tuple(dims), sizes_of(sizes))


def _permute(operand: Operand, dims: Sequence[int]) -> View:
    positive = tuple(dim % len(operand.sizes) for dim in dims)
    return Permute(positive, tuple(operand.sizes[dim] for dim in positive))


def _slice(starts: Sequence[Any], limits: Sequence[Any], steps: Sequence[Any]) -> View:
    begin, end, strides = sizes_of(starts), sizes_of(limits), sizes_of(steps)
    sizes = tuple(
        floordiv(stop - start + (step - 1), step)
        for start, stop, step in zip(begin, end, strides, strict=True)
    )
    return Slice(begin, strides, sizes)


def _flip(operand: Operand, dims: Sequence[int]) -> View:
    return Flip(tuple(dim % len(operand.sizes) for dim in dims), operand.sizes)


def size_of(arg: Any) -> IntLike:
    """One size argument."""
    value = arg.value if isinstance(arg, Number) else arg
    assert not isinstance(value, float)
    return value if not isinstance(value, bool) else int(value)


def sizes_of(sizes: Sequence[Any]) -> Sizes:
    """A list of size arguments."""
    return tuple(size_of(size) for size in sizes)


def formula_of(prim: PrimOp, spec: TensorSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Formula:
    """The formula of a primitive that is no view."""
    match prim.kind:
        case PrimKind.POINTWISE:
            return _pointwise(prim.name, spec, args, kwargs)
        case PrimKind.REDUCTION:
            return _reduction(prim.name, *args, **kwargs)
        case PrimKind.CREATION:
            return _full(*args, **kwargs) if prim.name == "full" else _iota(*args, **kwargs)
        case PrimKind.INDEXING:
            return _INDEXING[prim.name](*args, **kwargs)
    raise AssertionError(f"no formula for primitive {prim.name}")


def _pointwise(name: str, spec: TensorSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Formula:
    if name == "convert_dtype":
        return Pointwise(name, (args[0],), spec.dtype)
    given = tuple(_scalar_argument(arg) for arg in (*args, *kwargs.values()))
    compute = spec.dtype
    if name in COMPARISONS:
        compute = _common_dtype(given)
    return Pointwise(name, given, compute)


def _scalar_argument(arg: Any) -> Argument:
    return arg if isinstance(arg, Operand | Number | RuntimeFloat) else Number(arg)


def _common_dtype(args: Sequence[Argument]) -> torch.dtype:
    """The dtype in which tensors and numbers are compared."""
    common: torch.dtype | None = None
    for arg in args:
        if isinstance(arg, Operand):
            common = arg.dtype if common is None else torch.promote_types(common, arg.dtype)
    assert common is not None
    numbers = [arg.value if isinstance(arg, Number) else 0.0 for arg in args if not isinstance(arg, Operand)]
    if not common.is_floating_point and any(isinstance(number, float) for number in numbers):
        return torch.float32
    if common == torch.bool and any(not isinstance(number, bool) for number in numbers):
        return torch.int64
    return common


def _reduction(name: str, operand: Operand, dims: Any, **_: Any) -> Formula:
    listed = (dims,) if isinstance(dims, int) else dims
    return Reduction(name, operand, tuple(sorted(dim % len(operand.sizes) for dim in listed)))


def _full(sizes: Any, value: Any, dtype: Any = None, device: Any = None) -> Formula:
    return Fill(value if isinstance(value, Number | RuntimeFloat) else Number(value))


def _iota(length: Any, start: Any, step: Any, dtype: Any = None, device: Any = None) -> Formula:
    return Iota(size_of(start), size_of(step))


def _pad(operand: Operand, low: Sequence[Any], high: Sequence[Any], value: bool | float) -> Formula:
    return Pad(operand, sizes_of(low), value.value if isinstance(value, Number) else value)


def _cat(operands: Sequence[Operand], dim: int) -> Formula:
    axis = dim % len(operands[0].sizes)
    starts: list[IntLike] = [0]
    for operand in operands[:-1]:
        starts.append(starts[-1] + operand.sizes[axis])
    return Cat(tuple(operands), tuple(starts), axis)


def _index(operand: Operand, indices: Sequence[Operand | None], wraps: bool = True) -> Formula:
    padded = (*indices, *([None] * (len(operand.sizes) - len(indices))))
    indexed = [axis for axis, index in enumerate(padded) if index is not None]
    first = padded[indexed[0]]
    assert first is not None
    adjacent = indexed == list(range(indexed[0], indexed[0] + len(indexed)))
    start = indexed[0] if adjacent else 0
    index_dims = tuple(range(start, start + len(first.sizes)))
    rest: list[int | None] = []
    position = 0
    for index in padded:
        if index is not None:
            rest.append(None)
            continue
        if position == start:
            position += len(index_dims)
        rest.append(position)
        position += 1
    return Gather(operand, padded, index_dims, tuple(rest), wraps)


def _gather(operand: Operand, dim: int, index: Operand) -> Formula:
    rank = len(operand.sizes)
    axis = dim % rank if rank else 0
    indices = tuple(index if k == axis else None for k in range(rank))
    rest = tuple(None if k == axis else k for k in range(rank))
    return Gather(operand, indices, tuple(range(rank)), rest, wraps=False)


_INDEXING: dict[str, Callable[..., Formula]] = {"pad": _pad, "cat": _cat, "index": _index, "gather": _gather}
