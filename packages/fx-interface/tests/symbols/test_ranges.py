"""Interval arithmetic over expressions of symbols."""

from __future__ import annotations

import itertools

import pytest

from fx_interface.symbols import IntLike, Range, Symbol, evaluate, floordiv, maximum, minimum, mod, symbol
from fx_interface.symbols.ranges import bounds, larger, smaller

A, B = symbol("a"), symbol("b")
RANGES = {Symbol("a"): Range(-2, 3), Symbol("b"): Range(1, 4)}


@pytest.mark.parametrize(
    "value",
    [
        A + B,
        A - B,
        A * B,
        -3 * A * B + 2,
        A * A,
        floordiv(A + 2, B),
        mod(A, B),
        minimum(A, B) - maximum(A, 2),
    ],
    ids=str,
)
def test_every_value_lies_within(value: IntLike) -> None:
    span = bounds(value, RANGES.__getitem__)
    for a, b in itertools.product(range(-2, 4), range(1, 5)):
        found = evaluate(value, {Symbol("a"): a, Symbol("b"): b})
        assert span.low is None or span.low <= found
        assert span.high is None or found <= span.high


def test_sums_are_exact() -> None:
    assert bounds(A - 2 * B + 1, RANGES.__getitem__) == Range(-2 - 8 + 1, 3 - 2 + 1)


def test_nothing_known_is_no_bound() -> None:
    assert bounds(A + 1, lambda atom: Range(None, None)) == Range(None, None)


def test_none_is_no_bound() -> None:
    assert larger(None, 2) == larger(2, None) == larger(1, 2) == 2
    assert smaller(None, 2) == smaller(2, None) == smaller(3, 2) == 2
    assert larger(None, None) is None
