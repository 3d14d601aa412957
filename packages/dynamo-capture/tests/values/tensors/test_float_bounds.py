"""Limits of floats: what Python computes of numbers inside stays inside, and raises nothing where that is said."""

from __future__ import annotations

import itertools
import math
import operator

import pytest

from dynamo_capture.values.tensors.float_bounds import NO_BOUNDS, Bounds, after, after_power, has_power

NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.5, -7.25, 1e-320, 1e160, -1e160, 3.4e38, math.inf, -math.inf, math.nan)
LIMITS = (
    NO_BOUNDS,
    Bounds(0.0),
    Bounds(largest=3.5e38),
    Bounds(0.0, 1e200),
    Bounds(0.5, 1.0),
    Bounds.of(-7.25),
)
OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


def _is_inside(number, limits):
    if math.isnan(number):
        return True
    return number >= limits.least and (math.isinf(number) or abs(number) <= limits.largest)


@pytest.mark.parametrize("symbol", OPERATORS)
def test_results_are_inside_of_the_limits(symbol):
    for one, other in itertools.product(LIMITS, LIMITS):
        found = after(symbol, one, other)
        for a, b in itertools.product(NUMBERS, NUMBERS):
            if _is_inside(a, one) and _is_inside(b, other) and not (symbol == "/" and b == 0):
                assert _is_inside(OPERATORS[symbol](a, b), found), (a, b, one, other)


@pytest.mark.parametrize("exponent", [2.0, 0.5, 3.0, 0.0, 4.0, -1.0, 1.5, 100.0])
def test_powers(exponent):
    for limits in LIMITS:
        for base in NUMBERS:
            if not _is_inside(base, limits):
                continue
            try:
                power = base**exponent
            except ArithmeticError:
                power = None
            if has_power(limits, exponent):
                assert type(power) is float, (base, limits)
            if type(power) is float:
                assert _is_inside(power, after_power(limits, exponent)), (base, limits)


def test_squares_of_float32_have_roots():
    square = after_power(Bounds(largest=3.5e38), 2.0)
    assert has_power(Bounds(largest=3.5e38), 2.0)
    assert has_power(after("+", Bounds.of(0.0), square), 0.5)
    assert not has_power(NO_BOUNDS, 2.0)
    assert not has_power(Bounds(largest=3.5e38), 0.5)
