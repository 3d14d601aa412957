"""The symbol algebra agrees with plain Python integers, is normalised, and is interned."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fx_interface.symbols import (
    Expr,
    IntLike,
    Symbol,
    evaluate,
    floordiv,
    maximum,
    minimum,
    mod,
    substitute,
    symbol,
)

NAMES = ("s0", "s1", "s2")
OPERATIONS: tuple[tuple[Callable[[IntLike, IntLike], IntLike], Callable[[int, int], int]], ...] = (
    (operator.add, operator.add),
    (operator.sub, operator.sub),
    (operator.mul, operator.mul),
    (floordiv, operator.floordiv),
    (mod, operator.mod),
    (minimum, min),
    (maximum, max),
)
Tree = object


def trees() -> st.SearchStrategy[Tree]:
    leaves = st.one_of(st.integers(-6, 9), st.sampled_from(NAMES))
    return st.recursive(leaves, lambda inner: st.tuples(st.integers(0, 6), inner, inner), max_leaves=8)


def build(tree: Tree) -> IntLike:
    if isinstance(tree, int):
        return tree
    if isinstance(tree, str):
        return symbol(tree)
    operation, lhs, rhs = tree
    return OPERATIONS[operation][0](build(lhs), build(rhs))


def compute(tree: Tree, values: dict[str, int]) -> int:
    if isinstance(tree, int):
        return tree
    if isinstance(tree, str):
        return values[tree]
    operation, lhs, rhs = tree
    return OPERATIONS[operation][1](compute(lhs, values), compute(rhs, values))


VALUES = st.fixed_dictionaries({name: st.integers(-7, 40) for name in NAMES})


@settings(max_examples=600, deadline=None)
@given(trees(), VALUES)
def test_agrees_with_python_integers(tree: Tree, values: dict[str, int]) -> None:
    try:
        expected = compute(tree, values)
    except ZeroDivisionError:
        return
    try:
        built = build(tree)
    except (
        ZeroDivisionError
    ):  # a constant part divides by zero, which Python would have met too, or multiplied away
        return
    assert evaluate(built, {Symbol(name): value for name, value in values.items()}) == expected


@settings(max_examples=300, deadline=None)
@given(trees(), VALUES)
def test_substituting_numbers_gives_the_number(tree: Tree, values: dict[str, int]) -> None:
    bindings = {Symbol(name): value for name, value in values.items()}
    try:
        built = build(tree)
        expected = evaluate(built, bindings)
    except ZeroDivisionError:
        return
    assert substitute(built, bindings) == expected


@settings(max_examples=300, deadline=None)
@given(trees(), trees(), trees())
def test_sums_and_products_have_one_form(a: Tree, b: Tree, c: Tree) -> None:
    try:
        x, y, z = build(a), build(b), build(c)
    except ZeroDivisionError:
        return
    assert x + y is y + x or x + y == y + x
    for left, right in (
        ((x + y) + z, x + (y + z)),
        (x * y, y * x),
        (x * (y + z), x * y + x * z),
        (x - y, -(y - x)),
        (x + 0, x),
        (x * 1, x),
    ):
        assert left == right
        assert isinstance(left, int) or left is right


@settings(max_examples=200, deadline=None)
@given(trees())
def test_a_constant_is_a_plain_int(tree: Tree) -> None:
    try:
        built = build(tree)
    except ZeroDivisionError:
        return
    zero = built - built
    assert type(zero) is int
    assert zero == 0
    if isinstance(built, Expr):
        assert any(monomial for monomial, _ in built.terms)


def test_what_simplifies() -> None:
    s0, s1 = symbol("s0"), symbol("s1")
    assert floordiv(6 * s0 * s1, 2 * s0) is 3 * s1
    assert floordiv(4 * s0 + 6, 2) is 2 * s0 + 3
    assert floordiv(5 * s0 - 15, s0 - 3) == 5
    assert floordiv(s0 * s0 - s1 * s1, s0 + s1) is s0 - s1
    assert str(floordiv(s0 * s0 + 1, s0 + s1)) == "(s0*s0 + 1)//(s0 + s1)"
    assert floordiv(4 * s0, 6) is floordiv(2 * s0, 3)
    assert mod(4 * s0, 2) == 0
    assert mod(5 * s0 + 7, 4) is mod(s0 + 3, 4)
    assert maximum(s0, s0 + 1) is s0 + 1
    assert minimum(s1, s0) is minimum(s0, s1)


def test_text_form() -> None:
    s0, s1 = symbol("s0"), symbol("s1")
    assert str(2 * s0 * s1 - s0 + 3) == "2*s0*s1 - s0 + 3"
    assert str(floordiv(s0 + 1, 2)) == "(s0 + 1)//(2)"
    assert str(4 - s0) == "-s0 + 4"
    assert str(maximum(s0, s1)) == "max(s0, s1)"


def test_truth_is_refused() -> None:
    with pytest.raises(TypeError, match="ask a ShapeEnv"):
        bool(symbol("s0"))
    with pytest.raises(TypeError):
        symbol("s0") + 1.5  # type: ignore[operator]


def test_copies_are_the_same_object() -> None:
    expr = floordiv(symbol("s0") + 1, 2) * symbol("s1")
    assert copy.deepcopy(expr) is expr
    assert pickle.loads(pickle.dumps(expr)) is expr


def test_evaluate_names_a_missing_symbol() -> None:
    with pytest.raises(KeyError, match="s1"):
        evaluate(symbol("s0") + symbol("s1"), {Symbol("s0"): 1})


def test_what_is_filled_up_to_a_multiple_divides() -> None:
    n, batch, width = symbol("s0"), symbol("s1"), symbol("s2")
    for fill in ((64 - n % 64) % 64, (-n) % 64, (128 - n % 128 + 64) % 64):
        whole = n + fill
        assert mod(whole, 64) == 0
        assert 64 * floordiv(whole, 64) is whole
        assert 32 * floordiv(whole, 64) + 32 * floordiv(whole, 64) is whole
        assert mod(batch * whole * width, 64 * batch * width) == 0
        assert floordiv(batch * whole * width, 64 * batch * width) is floordiv(whole, 64)


def test_common_factors_leave_quotients_and_remainders() -> None:
    n, batch = symbol("s0"), symbol("s1")
    assert floordiv(6 * n * batch + 2 * batch, 4 * batch) is floordiv(3 * n + 1, 2)
    assert mod(6 * n * batch + 2 * batch, 4 * batch) is 2 * batch * mod(3 * n + 1, 2)
    assert 1 + floordiv(n - 1, 2) is floordiv(n + 1, 2)
