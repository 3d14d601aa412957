"""Floats that data tell: what follows from integers out of tensors (``correct.sum().item() / 64``, ``0.5 * n``), powers
and roots of floats out of tensors, questions about them (``norm < 1``), and integers made of them (``int(8 * ratio)``).

Python makes a float of each integer, rounded as the graph rounds it. Only a quotient of integers is computed exactly
first: there the graph states that both are floats. It states as well that a divisor is positive. Where that does not
hold, Python computes.
"""

from __future__ import annotations

import operator
from typing import Any

import torch

from dynamo_capture.semantics.numbers import floats
from dynamo_capture.semantics.tensors.content import data_numbers
from dynamo_capture.sources.formulas import applied, apply, number
from dynamo_capture.values import Const, TensorValue, Value, boolean, one_tensor
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.float_bounds import Bounds, after_power, has_power
from dynamo_capture.values.tensors.floating import ComputedFloat, DrawnFloat, RuntimeFloat
from fx_interface.symbols import Relation


def of_integers(tx: Context, symbol: str, lhs: Value, rhs: Value) -> Value | None:
    """``lhs symbol rhs`` that is a float, of integers from data beside each other or a number; None for others."""
    integers = [value.expr for value in (lhs, rhs) if value.expr is not None]
    if not integers or not all(tx.env.is_from_data(expr) for expr in integers):
        return None
    is_of_floats = any(value.is_open or value.known_as(float) is not None for value in (lhs, rhs))
    if symbol != "/" and not is_of_floats:
        return None
    if symbol == "/":
        if rhs.expr is not None:  # where it is not positive, Python divides, or raises
            _assume(tx, Relation("<", 0, rhs.expr))
        elif not floats.is_nonzero(rhs):
            return None
    if not is_of_floats:
        for expr in integers:
            _assume(tx, Relation("<=", expr, floats.EXACT_INTEGERS))
            _assume(tx, Relation("<=", -floats.EXACT_INTEGERS, expr))
    return floats.binary(tx, symbol, lhs, rhs)


def by_float(tx: Context, symbol: str, lhs: Value, rhs: Value) -> Value | None:
    """``lhs / rhs`` by a float out of tensors, which the graph states to be other than zero; None for others."""
    if symbol != "/" or not isinstance(rhs, RuntimeFloat) or not rhs.is_open or rhs.formula is not None:
        return None
    if lhs.python_type() not in (int, float):
        return None
    is_other = one_tensor(tx.tensors.call_function(operator.ne, [rhs.tensor(), Const(0)], {}))
    if not data_numbers.assume_true(tx, is_other):
        return None
    return floats.binary(tx, symbol, lhs, rhs, divides=True)


def power(tx: Context, symbol: str, lhs: Value, rhs: Value) -> Value | None:
    """``lhs ** rhs`` with a float that only data tell, where Python gives a float and raises nothing: what is known of
    the base says so, or the graph states it. None for other operations."""
    if symbol != "**" or not any(map(is_of_data, (lhs, rhs))):
        return None
    if not all(floats.is_number(value) for value in (lhs, rhs)):
        return None
    exponent = floats.known_number(rhs)
    if exponent is not None and has_power(floats.bounds(lhs), exponent):
        return floats.binary(tx, symbol, lhs, rhs, divides=True)
    made = floats.binary(tx, symbol, lhs, rhs, divides=True)
    if not isinstance(made, RuntimeFloat):
        return None
    given = [value.tensor() for value in (lhs, rhs) if isinstance(value, RuntimeFloat)]
    infinite = [tx.tensors.call_function(torch.isfinite, [one], {}) for one in given]
    allowed: Value = tx.tensors.call_function(torch.isfinite, [made.tensor()], {})
    for one in infinite:
        other = tx.tensors.call_function(torch.logical_not, [one], {})
        allowed = tx.tensors.call_function(torch.logical_or, [allowed, other], {})
    return made if data_numbers.assume_true(tx, one_tensor(allowed)) else None


def root(tx: Context, value: Value) -> Value | None:
    """``math.sqrt(value)`` of a float out of a tensor that is not below zero, which the graph states where it is not
    known. None for others."""
    if not isinstance(value, ComputedFloat) or not value.is_open:
        return None
    given, bounds, formula = value.tensor(), value.bounds, value.formula
    if formula is not None:
        if not tx.facts.decide(formula, ">=", number(0)):
            return None
    elif not bounds.least >= 0:
        below = tx.tensors.call_function(operator.lt, [given, Const(0)], {})
        if not data_numbers.assume_true(
            tx, one_tensor(tx.tensors.call_function(torch.logical_not, [below], {}))
        ):
            return None
    # The root of a complex number is the C library's, which rounds as Python does; that of a real one need not be.
    wide = given.call_method(tx, "to", [Const(torch.complex128)], {})
    found = tx.tensors.call_function(torch.abs, [tx.tensors.call_function(torch.sqrt, [wide], {})], {})
    is_zero = tx.tensors.call_function(operator.eq, [given, Const(0)], {})
    made = one_tensor(tx.tensors.call_function(torch.where, [is_zero, given, found], {}))
    bounds = after_power(Bounds(0.0, bounds.largest), 0.5)
    return ComputedFloat(tx, apply("math.sqrt", formula), (value,), made, bounds=bounds)


_QUESTIONS: dict[str, Any] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def compare(tx: Context, symbol: str, lhs: Value, rhs: Value) -> Value | None:
    """``lhs symbol rhs`` of floats of which only data tell one; None for others."""
    if not any(map(is_of_data, (lhs, rhs))) or not all(floats.is_number(value) for value in (lhs, rhs)):
        return None
    first, second = (floats.as_tensor(tx, value) for value in (lhs, rhs))
    answer = one_tensor(tx.tensors.call_function(_QUESTIONS[symbol], [first, second], {}))
    return data_numbers.truth_of(tx, answer, is_new=True)


def asked(tx: Context, name: str, value: Value) -> Value | None:
    """What ``math.isnan``, and others that torch has by the same name, say about a float out of a tensor; None for
    other values."""
    if not isinstance(value, ComputedFloat) or not value.is_open:
        return None
    if value.formula is not None:
        return boolean(tx.facts.decide(applied(f"math.{name}", value.formula), "same", number(True)))
    answer = one_tensor(tx.tensors.call_function(getattr(torch, name), [value.tensor()], {}))
    return data_numbers.truth_of(tx, answer, is_new=True)


def absolute(tx: Context, value: Value) -> Value | None:
    """``abs(value)`` of a float out of a tensor; None for others."""
    if not isinstance(value, ComputedFloat) or not value.is_open:
        return None
    made = one_tensor(tx.tensors.call_function(torch.abs, [value.tensor()], {}))
    bounds = Bounds(0.0, value.bounds.largest)
    return ComputedFloat(tx, apply("abs", value.formula), (value,), made, bounds=bounds)


_ROUNDED: dict[str, Any] = {
    "int": torch.trunc,
    "trunc": torch.trunc,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "round": torch.round,
}
"""What gives an integer of a float: both halve to even."""


def integer(tx: Context, name: str, value: Value) -> Value | None:
    """``int(value)``, ``math.floor(value)`` and the like of a float that is drawn, or that data tell: an integer from
    data. The graph states that it has 64 bits; where it has not, or is none, Python computes or raises. None for other
    values."""
    if not isinstance(value, (ComputedFloat, DrawnFloat)) or not value.is_open:
        return None
    if tx.tensors.modes or not tx.inference.follows_data:
        return None
    rounded = tx.tensors.call_function(_ROUNDED[name], [value.tensor()], {})
    size = tx.tensors.call_function(torch.abs, [rounded], {})
    fits = one_tensor(tx.tensors.call_function(operator.lt, [size, Const(2.0**63)], {}))
    if not data_numbers.assume_true(tx, fits):
        return None
    return data_numbers.take_out(tx, one_tensor(rounded.call_method(tx, "to", [Const(torch.int64)], {})))


def integer_in(tx: Context, tensor: TensorValue) -> Value | None:
    """``int(tensor)`` of a tensor that holds one float, which is not known; None for others."""
    spec = tensor.meta.spec
    if not spec.dtype.is_floating_point or tensor.content is not None or tensor.meta.cls is not torch.Tensor:
        return None
    if not all(isinstance(size, int) and size == 1 for size in spec.sizes):
        return None
    return integer(tx, "int", tensor.call_method(tx, "item", [], {}))


def is_of_data(value: Value) -> bool:
    """Whether it is a float that only data tell, and of which no fact can be known."""
    return isinstance(value, ComputedFloat) and value.is_open and value.formula is None


def _assume(tx: Context, relation: Relation) -> None:
    if tx.env.known(relation) is not True:
        data_numbers.assume(tx, relation)
