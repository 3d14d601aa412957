"""Pointwise operators: operands are promoted, broadcast and, for the half types, computed in float32."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, TypeVar

import torch

from fx_interface.symbols import Expr, ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps import promotion
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.prims import PrimTensor, broadcast_to, current_trace, ops
from primtorch_decomps.registry import decomposes
from primtorch_decomps.shapes import Sizes, broadcast
from primtorch_decomps.strides import pointwise_strides, preserved_strides

Function = TypeVar("Function", bound=Callable[..., Any])


class Kind(Enum):
    """What dtype a pointwise operator computes in and returns."""

    ARITHMETIC = "the operands' common dtype; half types computed in float32"
    EXACT = "the operands' common dtype, computed in it, because no rounding occurs"
    FLOAT = "as ARITHMETIC, after turning integers into the default floating dtype"
    BOOLEAN = "computed in the common dtype; the result is bool"


LayoutRule = Callable[[Sequence[TensorSpec], Sizes, ShapeEnv], Sizes]
"""Strides of a result, from the tensors among the operands and its sizes."""


def row_major(tensors: Sequence[TensorSpec], sizes: Sizes, env: ShapeEnv) -> Sizes:
    """The layout of results that eager makes without looking at its operands."""
    return contiguous_strides(sizes)


def as_first(tensors: Sequence[TensorSpec], sizes: Sizes, env: ShapeEnv) -> Sizes:
    """The layout of results that eager makes by ``empty_like`` of the first operand."""
    first = tensors[0]
    if first.sizes == sizes:
        return preserved_strides(sizes, first.strides, env)
    return pointwise_strides(tensors, sizes, env)


def second_first(tensors: Sequence[TensorSpec], sizes: Sizes, env: ShapeEnv) -> Sizes:
    """The layout where eager's loop names the first two operands in the other order."""
    return pointwise_strides([tensors[1], tensors[0], *tensors[2:]], sizes, env)


def pointwise(
    *names: str,
    kind: Kind = Kind.ARITHMETIC,
    operands: int = 1,
    unary: bool = False,
    layout: LayoutRule | None = None,
    stored: Sequence[int] = (),
) -> Callable[[Function], Function]:
    """Declare a formula over operands of one dtype and shape as the decomposition of pointwise operators.

    The first ``operands`` positional arguments take part in promotion, as do all positional tensors; Python numbers
    among them arrive cast to the computing dtype's category. The rest is passed as it is. ``unary`` says that eager
    does not count a number as an operand when it chooses the result's layout; ``layout`` is the rule for it where it is
    not that of TensorIterator. ``stored``: places of arguments that eager rounds to the common dtype, half types too,
    before it computes (``x % 0.3`` of bfloat16 divides by 0.30078125).
    """

    def declare(formula: Function) -> Function:
        function = decomposition_of(formula, kind, operands, stored)
        decomposes(*names, rule=pointwise_rule(kind, operands, formula, unary=unary, layout=layout))(function)
        return formula

    return declare


def _split(args: Sequence[Any], operands: int, tensor_type: type) -> tuple[list[Any], list[Any]]:
    tensors = [a for a in args if type(a) is tensor_type]
    numbers = [a for a in args[:operands] if type(a) is not tensor_type and a is not None]
    if not tensors:
        raise RuleMismatchError("no operand is a tensor")
    return tensors, numbers


def _common_dtype(kind: Kind, tensors: Sequence[Any], numbers: Sequence[Any]) -> torch.dtype:
    common = promotion.result_type(tensors, numbers)
    return promotion.to_float(common) if kind is Kind.FLOAT else common


def decomposition_of(
    formula: Callable[..., Any], kind: Kind, operands: int, stored: Sequence[int] = ()
) -> Callable[..., Any]:
    rounds = kind in (Kind.ARITHMETIC, Kind.FLOAT)
    names = _parameter_names(formula)[:operands]

    @functools.wraps(formula)
    def function(*args: Any, **kwargs: Any) -> PrimTensor:
        if kwargs:
            args = _positional(args, kwargs, names)
        tensors, numbers = _split(args, operands, PrimTensor)
        common = _common_dtype(kind, tensors, numbers)
        compute = promotion.compute_dtype(common) if rounds else common
        sizes = broadcast([t.sizes for t in tensors], current_trace().env)
        device = common_device(tensors)
        ready: list[Any] = []
        for place, arg in enumerate(args):
            if place in stored and compute is not common and arg is not None:
                arg = _stored(arg, common, device)
            if type(arg) is PrimTensor:
                moved = ops.convert_dtype(move_scalar(arg, device), compute)
                ready.append(broadcast_to(moved, sizes))
            else:
                ready.append(arg if place >= operands or arg is None else promotion.cast_number(arg, compute))
        result = formula(*ready, **kwargs)
        assert isinstance(result, PrimTensor), formula
        return result if kind is Kind.BOOLEAN else ops.convert_dtype(result, common)

    function.formula = formula  # type: ignore[attr-defined]
    return function


def _stored(arg: Any, dtype: torch.dtype, device: torch.device) -> PrimTensor:
    """An argument as a tensor of ``dtype`` holds it."""
    return ops.convert_dtype(arg, dtype) if type(arg) is PrimTensor else ops.full((), arg, dtype, device)


def _parameter_names(formula: Callable[..., Any]) -> tuple[str, ...]:
    code = formula.__code__
    return code.co_varnames[: code.co_argcount]


def _positional(args: tuple[Any, ...], kwargs: dict[str, Any], names: Sequence[str]) -> tuple[Any, ...]:
    """``args`` with operands given by keyword moved to their places, out of ``kwargs``."""
    found = list(args)
    for name in names[len(args) :]:
        if name not in kwargs and not any(later in kwargs for later in names):
            break
        found.append(kwargs.pop(name, None))
    return tuple(found)


def common_device(tensors: Sequence[Any]) -> torch.device:
    """The device that a pointwise result lies on: 0-dimensional CPU tensors yield to any other."""
    device: torch.device = tensors[0].device
    for tensor in tensors:
        if tensor.device != device:
            if device.type == "cpu" and all(t.rank == 0 for t in tensors if t.device == device):
                device = tensor.device
            elif tensor.device.type != "cpu" or tensor.rank:
                raise RuleMismatchError(f"operands on {device} and {tensor.device}")
    return device


def move_scalar(x: PrimTensor, device: torch.device) -> PrimTensor:
    """A 0-dimensional CPU operand on the device of the others."""
    if x.device == device:
        return x
    spec = TensorSpec(x.sizes, x.strides, x.dtype, device)
    trace = current_trace()
    if not trace.recording:
        return PrimTensor.of(spec)
    made = trace.emit_library(torch.ops.aten._to_copy.default, (x,), {"device": device}, spec, pure=True)
    assert isinstance(made, PrimTensor)
    return made


def pointwise_rule(
    kind: Kind,
    operands: int,
    formula: Callable[..., Any] | None = None,
    *,
    unary: bool = False,
    layout: LayoutRule | None = None,
) -> Callable[..., Any]:
    names = () if formula is None else _parameter_names(formula)[:operands]

    def rule(*args: Any, env: ShapeEnv, **kwargs: Any) -> TensorSpec:
        if kwargs:
            args = _positional(args, kwargs, names)
        tensors, numbers = _split(args, operands, TensorSpec)
        dtype = torch.bool if kind is Kind.BOOLEAN else _common_dtype(kind, tensors, numbers)
        if layout is not None:
            sizes = broadcast([t.sizes for t in tensors], env)
            return TensorSpec(sizes, layout(tensors, sizes, env), dtype, common_device(tensors))
        return pointwise_spec(tensors, dtype, env, numbers=bool(numbers) and not unary)

    rule.formula = formula  # type: ignore[attr-defined]
    return rule


def pointwise_spec(
    tensors: Sequence[TensorSpec], dtype: torch.dtype, env: ShapeEnv, *, numbers: bool = False
) -> TensorSpec:
    """The spec that TensorIterator gives to a result over ``tensors`` (``numbers``: and a Python number)."""
    sizes = broadcast([t.sizes for t in tensors], env)
    strides = pointwise_strides(tensors, sizes, env, numbers)
    return TensorSpec(sizes, strides, dtype, common_device(tensors))


def is_number(value: Any) -> bool:
    """Whether an argument is a Python number or a size."""
    return isinstance(value, (int, float, complex, Expr))
