"""Floats that follow from integers out of tensors: ``correct.sum().item() / 64``, ``float(n)``, ``0.5 * n``.

Python makes a float of each integer, rounded as the graph rounds it. Only a quotient of integers is computed exactly
first: there the graph states that both are floats. It states as well that a divisor is positive. Where that does not
hold, Python computes.
"""

from __future__ import annotations

import operator

import torch

from dynamo_capture.semantics.numbers import floats
from dynamo_capture.semantics.tensors.content import data_numbers
from dynamo_capture.values import Const, Value, one_tensor
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.floating import RuntimeFloat
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
    zero = one_tensor(tx.tensors.call_function(operator.eq, [rhs.tensor(), Const(0)], {}))
    flag = one_tensor(zero.call_method(tx, "to", [Const(torch.int64)], {}))
    found = data_numbers.take_out(tx, flag)
    if found is None:
        return None
    data_numbers.assume(tx, Relation("==", found.expr, 0))
    return floats.binary(tx, symbol, lhs, rhs, divides=True)


def _assume(tx: Context, relation: Relation) -> None:
    if tx.env.known(relation) is not True:
        data_numbers.assume(tx, relation)
