"""Functions of floats out of tensors that the graph cannot compute to Python's bits: Python does, when it has run.

    history.append(round(loss.item(), 4))       # what is only logged or returned is no end of the graph
    return math.exp(nll.item() / n)

That a function raises nothing the graph states, where it may.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import torch

from dynamo_capture.semantics.numbers import floats
from dynamo_capture.semantics.tensors.content import data_numbers
from dynamo_capture.values import Const, Value, one_tensor
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.floating import ComputedFloat, LateFloat, RuntimeFloat


class _Allowed(NamedTuple):
    """For which floats a function raises nothing, beside NaN: those above ``above``, up to ``most``, and infinity where
    ``takes_infinity``."""

    above: float = -math.inf
    most: float = math.inf
    takes_infinity: bool = True


_ALL: Final = _Allowed()
_POSITIVE: Final = _Allowed(above=0.0)
_FINITE: Final = _Allowed(takes_infinity=False)
_GROWING: Final = _Allowed(most=709.0)
FUNCTIONS: Final[dict[Callable[..., float], _Allowed]] = {
    math.exp: _GROWING,
    math.expm1: _GROWING,
    math.log: _POSITIVE,
    math.log2: _POSITIVE,
    math.log10: _POSITIVE,
    math.log1p: _Allowed(above=-1.0),
    math.sin: _FINITE,
    math.cos: _FINITE,
    math.tan: _FINITE,
    math.tanh: _ALL,
    math.atan: _ALL,
    math.erf: _ALL,
    math.erfc: _ALL,
    math.degrees: _ALL,
    math.radians: _ALL,
}
_OPERATORS: Final[dict[str, Callable[..., float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_DIGITS: Final = 300
"""Digits behind the point for which rounding is sure to raise nothing."""


def function(tx: Context, called: Callable[..., float], args: list[Value]) -> Value | None:
    """``math.exp(x)`` and the like, of a float out of a tensor; None for others."""
    value = args[0] if len(args) == 1 else None
    if not _is_late(tx, value):
        return None
    assert isinstance(value, ComputedFloat)
    allowed = _flag(tx, FUNCTIONS[called], value)
    return LateFloat(tx, called, (value,)) if allowed else None


def rounded(tx: Context, args: list[Value]) -> Value | None:
    """``round(x, digits)`` of a float that only data tell; None for others, or without digits: that is an integer."""
    if len(args) != 2 or not (isinstance(args[0], LateFloat) or _is_late(tx, args[0])):
        return None
    digits = None if args[1].is_open else args[1].known_as(int)
    return None if digits is None or not 0 <= digits <= _DIGITS else LateFloat(tx, round, (args[0], args[1]))


def binary(tx: Context, symbol: str, lhs: Value, rhs: Value) -> Value | None:
    """``lhs symbol rhs`` of which one is such a float; None for others, or where it may raise."""
    computed = _OPERATORS.get(symbol)
    if computed is None or not any(isinstance(value, LateFloat) for value in (lhs, rhs)):
        return None
    if not all(floats.is_number(value) for value in (lhs, rhs)):
        return None
    if symbol == "/" and not floats.known_number(rhs):
        return None
    return LateFloat(tx, computed, (lhs, rhs))


def _is_late(tx: Context, value: Value | None) -> bool:
    return isinstance(value, ComputedFloat) and value.is_open and tx.inference.follows_data


def _flag(tx: Context, allowed: _Allowed, value: RuntimeFloat) -> bool:
    """Whether the graph states that the function raises nothing, or that is known."""
    if allowed is _ALL:
        return True
    given = value.tensor()

    def asked(function: Any, number: float) -> Value:
        return tx.tensors.call_function(function, [given, Const(number)], {})

    refused: Value
    if not allowed.takes_infinity:
        refused = tx.tensors.call_function(torch.isinf, [given], {})
    elif allowed.most < math.inf:
        above, below = asked(operator.gt, allowed.most), asked(operator.lt, math.inf)
        refused = tx.tensors.call_function(torch.logical_and, [above, below], {})
    else:
        refused = asked(operator.le, allowed.above)
    allows = one_tensor(tx.tensors.call_function(torch.logical_not, [refused], {}))
    return data_numbers.assume_true(tx, allows)
