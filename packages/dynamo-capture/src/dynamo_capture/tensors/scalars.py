"""Open floats as arguments of tensor operations: put in terms of tensors, where the result is the same.

``param.addcdiv_(a, b, value=-step_size)`` becomes ``param.add_(a * t / b)`` with ``t`` the float as a tensor without
dimensions. Where there is no such form, the float's value is asked for.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from dynamo_capture import floats
from dynamo_capture.floats import is_open
from dynamo_capture.values import Const, TensorValue, Value
from dynamo_capture.values.floating import RuntimeFloat

if TYPE_CHECKING:
    from dynamo_capture.trace import Trace

_PLAIN = ("add", "sub", "mul", "div", "truediv", "true_divide", "lt", "le", "gt", "ge", "eq", "ne")
_WITH_TENSORS = frozenset((*_PLAIN, "iadd", "isub", "imul", "itruediv", "add_", "sub_", "mul_", "div_"))
"""Names of functions and methods of two operands whose result is the same for a number and for a tensor without
dimensions."""
_NUMBERS = frozenset({"alpha", "value"})
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(operator, name)
        for name in ("add", "sub", "mul", "truediv", "lt", "le", "gt", "ge", "eq", "ne")
    },
    "div": operator.truediv,
    "true_divide": operator.truediv,
}
_REDUCED = (torch.float16, torch.bfloat16)


def without_open_floats(
    tx: Trace, name: str, args: list[Value], kwargs: dict[str, Value]
) -> list[Value] | Value:
    """The arguments of a tensor operation, open floats replaced by tensors; or its result, computed in another way."""
    for keyword in _NUMBERS & kwargs.keys():
        given = kwargs[keyword]
        number = floats.of_tensor(tx, given) if isinstance(given, TensorValue) else None
        if number is not None:  # torch reads the number out of the tensor
            kwargs = {**kwargs, keyword: number}
    if not (any(map(is_open, args)) or any(map(is_open, kwargs.values()))):
        return args
    form = _FORMS.get(name.removesuffix("_"))
    if form is not None:
        made = _by_form(tx, form, name, args, kwargs)
        if made is not None:
            return made
    if len(args) != 2 or kwargs or name not in _WITH_TENSORS:
        return args
    tensor = next((value for value in args if isinstance(value, TensorValue)), None)
    if tensor is None:
        return args
    if tensor.meta.spec.dtype in _REDUCED and tensor.meta.spec.device.type == "cpu":
        return _in_single(tx, name, args, tensor)
    return [_operand(tx, value, tensor) if is_open(value) else value for value in args]


def _in_single(tx: Trace, name: str, args: list[Value], tensor: TensorValue) -> Value:
    """A plain operation of a tensor of less precision and a number: torch computes it in float32, and rounds once."""
    wide = [_cast(tx, arg, torch.float32) if isinstance(arg, TensorValue) else arg for arg in args]
    writes = name.endswith("_") or name.startswith("i")
    function = _FUNCTIONS[name.removesuffix("_").removeprefix("i")]
    made = tx.tensors.call_function(function, wide, {})
    if writes:
        return tensor.call_method(tx, "copy_", [made], {})
    assert isinstance(made, TensorValue)
    return made if made.meta.spec.dtype is torch.bool else _cast(tx, made, tensor.meta.spec.dtype)


def _operand(tx: Trace, value: Value, beside: TensorValue) -> Value:
    """The tensor that stands for a float beside another tensor: promotion must go as with a Python number."""
    assert isinstance(value, RuntimeFloat)
    spec = beside.meta.spec
    if spec.device.type != "cpu":
        return value
    if spec.dtype in (torch.float32, torch.float64):
        made = value.tensor()
        return made if spec.rank or spec.dtype is torch.float64 else _cast(tx, made, spec.dtype)
    if spec.dtype.is_floating_point or spec.dtype.is_complex:
        return value
    return _cast(tx, value.tensor(), torch.get_default_dtype())


def _cast(tx: Trace, tensor: TensorValue, dtype: torch.dtype) -> Value:
    return tx.tensors.call_method(tensor, "to", [Const(dtype)], {})


def _add(x: Any, other: Any, alpha: Any = 1) -> Any:
    return x + other * alpha


def _sub(x: Any, other: Any, alpha: Any = 1) -> Any:
    return x - other * alpha


def _addcmul(x: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Any:
    return x + tensor1 * value * tensor2


def _addcdiv(x: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Any:
    return x + tensor1 * value / tensor2


def _lerp(x: Any, end: Any, weight: Any) -> Any:
    return torch.lerp(x, end, torch.as_tensor(weight, dtype=x.dtype))


_FORMS: dict[str, Callable[..., Any]] = {
    "add": _add,
    "sub": _sub,
    "addcmul": _addcmul,
    "addcdiv": _addcdiv,
    "lerp": _lerp,
}
"""Operations with a float beside their tensors, in terms of tensors; the last parameter is the float."""


def _by_form(
    tx: Trace, form: Callable[..., Any], name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """The operation by its form, where all tensors are of one dtype and in the CPU's memory; else None."""
    tensors = [value for value in args if isinstance(value, TensorValue)]
    count = 2 if form in (_add, _sub, _lerp) else 3
    if len(tensors) != count or any(value.meta.spec.device.type != "cpu" for value in tensors):
        return None
    dtypes = {value.meta.spec.dtype for value in tensors}
    dtype = tensors[0].meta.spec.dtype
    if len(dtypes) > 1 or not dtype.is_floating_point:
        return None
    owner, wide = args[0], args
    if dtype in _REDUCED:
        wide = [
            _cast(tx, value, torch.float32) if isinstance(value, TensorValue) else value for value in args
        ]
    made = tx.inliner.call_function(Const(form), wide, kwargs)
    if name.endswith("_"):
        return owner.call_method(tx, "copy_", [made], {})
    return _cast(tx, made, dtype) if dtype in _REDUCED and isinstance(made, TensorValue) else made
