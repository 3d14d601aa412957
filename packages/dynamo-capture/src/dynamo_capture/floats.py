"""Arithmetic with floats that are read when the code runs: with each other, with numbers and with tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from dynamo_capture.values import Const, TensorValue, Value
from dynamo_capture.values.floating import ComputedFloat, RuntimeFloat

if TYPE_CHECKING:
    from dynamo_capture.trace import Trace

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_EXACT_INTEGERS = 1 << 53
_PLAIN = ("add", "sub", "mul", "div", "truediv", "true_divide", "lt", "le", "gt", "ge", "eq", "ne")
_WITH_TENSORS = frozenset((*_PLAIN, "iadd", "isub", "imul", "itruediv", "add_", "sub_", "mul_", "div_"))
"""Names of functions and methods of two operands whose result is the same for a number and for a tensor without
dimensions."""


def is_open(value: Value) -> bool:
    """Whether a value is a float that is not fixed."""
    return isinstance(value, RuntimeFloat) and value.is_unread


def binary(tx: Trace, symbol: str, lhs: Value, rhs: Value) -> Value | None:
    """``lhs symbol rhs`` of two numbers, one of them an open float; None where the values must be known."""
    function = _ARITHMETIC.get(symbol)
    if function is None or (symbol == "/" and not _surely_nonzero(rhs)):
        return None
    hints = [_hint(lhs), _hint(rhs)]
    if None in hints:
        return None
    arguments = [value.tensor() if isinstance(value, RuntimeFloat) else value for value in (lhs, rhs)]
    tensor = tx.tensors.call_function(function, arguments, {})
    assert isinstance(tensor, TensorValue)
    return ComputedFloat(tx, function(*hints), _operands(lhs, rhs), tensor)


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def compare(symbol: str, lhs: Value, rhs: Value) -> bool | None:
    """``lhs symbol rhs`` of an open float and a known number; None for anything else."""
    if not isinstance(lhs, RuntimeFloat):
        lhs, rhs, symbol = rhs, lhs, _MIRRORED[symbol]
    if not isinstance(lhs, RuntimeFloat) or isinstance(rhs, RuntimeFloat):
        return None
    if not isinstance(rhs, Const) or type(rhs.value) not in (int, float):
        return None
    return lhs.compare(symbol, rhs.value)


def negated(tx: Trace, value: RuntimeFloat) -> Value:
    """``-value``."""
    tensor = tx.tensors.call_function(operator.neg, [value.tensor()], {})
    assert isinstance(tensor, TensorValue)
    return ComputedFloat(tx, -value.hint, (value,), tensor)


def _operands(*values: Value) -> tuple[RuntimeFloat, ...]:
    return tuple(value for value in values if isinstance(value, RuntimeFloat))


def _surely_nonzero(value: Value) -> bool:
    return isinstance(value, Const) and not isinstance(value, RuntimeFloat) and value.value not in (0, None)


def _hint(value: Value) -> Any:
    """A number in this call; None for anything that float arithmetic is not done with here."""
    if isinstance(value, RuntimeFloat):
        return value.hint
    if not isinstance(value, Const) or type(value.value) not in (int, float):
        return None
    number = value.value
    return number if isinstance(number, float) or abs(number) < _EXACT_INTEGERS else None


def with_tensors(tx: Trace, name: str, args: list[Value], kwargs: dict[str, Value]) -> list[Value]:
    """The arguments of a tensor operation, open floats replaced by tensors where the result is the same."""
    if len(args) != 2 or kwargs or name not in _WITH_TENSORS or not any(map(is_open, args)):
        return args
    tensor = next((value for value in args if isinstance(value, TensorValue)), None)
    if tensor is None:
        return args
    return [_operand(tx, value, tensor) if is_open(value) else value for value in args]


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
