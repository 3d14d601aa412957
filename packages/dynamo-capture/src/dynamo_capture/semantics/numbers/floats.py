"""Arithmetic with floats that are known only when the code runs: with each other, with numbers and with tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from dynamo_capture.sources.formulas import Formula, apply, number
from dynamo_capture.values import Const, TensorValue, Value, one_tensor
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.float_bounds import NO_BOUNDS, Bounds, after, after_power
from dynamo_capture.values.tensors.floating import SPEC, ComputedFloat, RuntimeFloat
from fx_interface.symbols import Relation

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": torch.pow,
}
EXACT_INTEGERS = 1 << 53
"""Below it every integer is a float."""
_FOLLOWED = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64})


def of_tensor(tx: Context, owner: TensorValue) -> RuntimeFloat | None:
    """``owner.item()`` of a tensor of floats with one element; None for other tensors."""
    spec = owner.meta.spec
    if spec.dtype not in _FOLLOWED or not spec.is_static or any(size != 1 for size in spec.sizes):
        return None
    if spec.device.type != "cpu" or tx.levels:  # a number has no derivative, and one for each slice is none
        return None
    formula = tx.tensors.followed.of(owner)
    bounds = Bounds(largest=torch.finfo(spec.dtype).max)
    taken: Value = owner
    if owner.meta.requires_grad:
        taken = taken.call_method(tx, "detach", [], {})
    if spec.sizes:
        taken = taken.call_method(tx, "reshape", [Const(())], {})
    copied = one_tensor(
        taken.call_method(tx, "to", [Const(SPEC.device), Const(SPEC.dtype)], {"copy": Const(True)})
    )
    return ComputedFloat(tx, formula, (), copied, bounds=bounds)


def binary(tx: Context, symbol: str, lhs: Value, rhs: Value, *, divides: bool = False) -> Value | None:
    """``lhs symbol rhs`` of two numbers, one of them an open float; None where the values must be known. ``divides``:
    the trace has made sure that ``rhs`` is not zero, or the power a float."""
    computed = tx.numbers.compute(symbol, [lhs, rhs])
    if computed is not None:
        return computed
    lhs, rhs = _as_float(tx, lhs), _as_float(tx, rhs)
    function = _ARITHMETIC.get(symbol)
    if function is None or not (is_number(lhs) and is_number(rhs)):
        return None
    if symbol == "/" and not divides and not is_nonzero(rhs):
        return None
    formula = apply(symbol, _formula(lhs), _formula(rhs))
    if symbol == "**" and not divides and (formula is None or not _is_real_power(tx, lhs, rhs)):
        return None
    arguments: list[Value] = [v.tensor() if isinstance(v, RuntimeFloat) else v for v in (lhs, rhs)]
    if symbol == "/":  # torch multiplies a number by the reciprocal, which rounds twice
        arguments[0] = as_tensor(tx, lhs)
    if symbol == "**":  # torch has functions of its own for some numbers, whose bits are other ones
        arguments[1] = as_tensor(tx, rhs)
    tensor = one_tensor(tx.tensors.call_function(function, arguments, {}))
    return ComputedFloat(tx, formula, _operands(lhs, rhs), tensor, bounds=_bounds_of(symbol, lhs, rhs))


def bounds(value: Value) -> Bounds:
    """Between which limits a number lies."""
    if isinstance(value, ComputedFloat):
        return value.bounds
    known = known_number(value)
    return NO_BOUNDS if known is None else Bounds.of(known)


def known_number(value: Value) -> float | None:
    """A number that does not vary, as a float; None for others, which are not fixed."""
    known = None if value.is_open else value.known_as(int, float)
    return None if known is None else float(known)


def _bounds_of(symbol: str, lhs: Value, rhs: Value) -> Bounds:
    if symbol == "**":
        exponent = known_number(rhs)
        return NO_BOUNDS if exponent is None else after_power(bounds(lhs), exponent)
    return after(symbol, bounds(lhs), bounds(rhs))


def _as_float(tx: Context, value: Value) -> Value:
    """An integer that varies as the float that Python makes of it beside another."""
    if value.expr is None:
        return value
    made = tx.numbers.compute("float", [value]) or of_integer(tx, value)
    return value if made is None else made


def of_integer(tx: Context, value: Value) -> RuntimeFloat | None:
    """``float(n)`` of an integer from data, in the graph; None for other values."""
    if value.expr is None or not tx.env.is_from_data(value.expr):
        return None
    options: dict[str, Value] = {"dtype": Const(SPEC.dtype), "device": Const(SPEC.device)}
    made = one_tensor(tx.tensors.call_function(torch.full, [Const(()), value], options))
    is_positive = tx.env.known(Relation("<", 0, value.expr)) is True
    return ComputedFloat(tx, None, (), made, is_positive)


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def compare(tx: Context, symbol: str, lhs: Value, rhs: Value) -> bool | None:
    """``lhs symbol rhs`` of an open float and a number; None for anything else."""
    if lhs.expr is not None or rhs.expr is not None:
        return tx.numbers.compare(symbol, lhs, rhs)
    if not lhs.is_open:
        lhs, rhs, symbol = rhs, lhs, _MIRRORED[symbol]
    assert isinstance(lhs, RuntimeFloat)
    if isinstance(rhs, RuntimeFloat):
        return lhs.compare(symbol, rhs)
    if not isinstance(rhs, Const) or type(rhs.value) not in (int, float):
        return None
    return lhs.compare(symbol, rhs.value)


def extreme(tx: Context, symbol: str, best: Value, candidate: Value) -> Value | None:
    """Of two floats the greater (``>``) or smaller (``<``), the first of equals, where only the run says which it is;
    None where the trace can compare them."""
    values = (best, candidate)
    if not any(isinstance(value, RuntimeFloat) and value.formula is None for value in values):
        return None
    if not all(isinstance(value, RuntimeFloat) or _is_float(value) for value in values):
        return None
    first, second = (as_tensor(tx, value) for value in values)
    function = operator.gt if symbol == ">" else operator.lt
    better = tx.tensors.call_function(function, [second, first], {})
    chosen = one_tensor(tx.tensors.call_function(torch.where, [better, second, first], {}))
    is_positive = all(map(_is_positive, values)) or (symbol == ">" and _is_positive(best))
    return ComputedFloat(tx, None, _operands(*values), chosen, is_positive, _of_either(values))


def chosen(tx: Context, condition: TensorValue, yes: Value, no: Value) -> Value | None:
    """``yes if condition else no``, of two floats and a tensor with one element; None for other values."""
    values = (yes, no)
    if tx.levels or condition.meta.spec.device.type != "cpu":
        return None
    if not all((isinstance(value, RuntimeFloat) and value.is_open) or _is_float(value) for value in values):
        return None
    answer: Value = condition
    if condition.meta.spec.sizes:
        answer = answer.call_method(tx, "reshape", [Const(())], {})
    if condition.meta.spec.dtype is not torch.bool:
        answer = tx.tensors.call_function(torch.ne, [answer, Const(0)], {})
    first, second = (as_tensor(tx, value) for value in values)
    made = one_tensor(tx.tensors.call_function(torch.where, [answer, first, second], {}))
    is_positive = all(map(_is_positive, values))
    return ComputedFloat(tx, None, _operands(*values), made, is_positive, _of_either(values))


def _of_either(values: tuple[Value, Value]) -> Bounds:
    one, other = map(bounds, values)
    return Bounds(min(one.least, other.least), max(one.largest, other.largest))


def negated(tx: Context, value: RuntimeFloat) -> Value:
    """``-value``."""
    computed = tx.numbers.compute("neg", [value])
    if computed is not None:
        return computed
    tensor = one_tensor(tx.tensors.call_function(operator.neg, [value.tensor()], {}))
    return ComputedFloat(tx, apply("neg", value.formula), (value,), tensor)


def as_tensor(tx: Context, value: Value) -> TensorValue:
    """A number as a float64 without dimensions."""
    if isinstance(value, RuntimeFloat):
        return value.tensor()
    made = one_tensor(tx.tensors.call_function(torch.full, [Const(()), value], {"dtype": Const(SPEC.dtype)}))
    return made


def _operands(*values: Value) -> tuple[RuntimeFloat, ...]:
    return tuple(value for value in values if isinstance(value, RuntimeFloat))


def _is_float(value: Value) -> bool:
    return value.known_as(float) is not None


def _is_positive(value: Value) -> bool:
    """Whether a number is greater than zero, whatever the program reads; NaN is not."""
    if isinstance(value, RuntimeFloat):
        return value.is_positive
    return isinstance(value, Const) and value.value > 0


def is_nonzero(value: Value) -> bool:
    """Whether Python may divide by a number; the trace depends on it where that follows from what is read."""
    if isinstance(value, RuntimeFloat):
        known = value.is_positive or bounds(value).least > 0
        return known or (value.formula is not None and value.compare("!=", 0))
    return isinstance(value, Const) and value.value not in (0, None)


def _is_real_power(tx: Context, base: Value, exponent: Value) -> bool:
    """Whether the power is a float, and computed without an exception: facts that the trace then depends on."""
    known, power = _formula(base), apply("**", _formula(base), _formula(exponent))
    if known is None or power is None:
        return False
    return tx.facts.decide(known, ">", number(0)) and tx.facts.decide(power, ">=", number(0))


def is_number(value: Value) -> bool:
    """Whether float arithmetic is done with a value here."""
    if isinstance(value, RuntimeFloat):
        return True
    if not isinstance(value, Const):
        return False
    known = value.value
    return type(known) is float or (type(known) is int and abs(known) < EXACT_INTEGERS)


def _formula(value: Value) -> Formula | None:
    if isinstance(value, RuntimeFloat):
        return value.formula
    return number(value.as_constant())
