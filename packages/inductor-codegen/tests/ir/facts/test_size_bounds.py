"""Symbolic sizes that are known not to be negative: no answer is wrong for any value, and usual questions have one."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from fx_interface.symbols import IntLike, Relation, ShapeEnv, Symbol, evaluate, symbol
from inductor_codegen.ir.facts.size_bounds import is_natural_size, least_of

S, T = symbol("s"), symbol("t")


def test_a_quotient_is_at_most_what_was_divided() -> None:
    assert is_natural_size(S + 1 - 2 * ((S + 1) // 2), {})
    assert is_natural_size(3 * ((S + 2) // 3) - S, {})
    assert not is_natural_size(S - 2 * ((S + 1) // 2), {})
    assert is_natural_size(S - (S // 2) * 2 + 5 * (T // 5) - T + 4, {})


def test_sizes_have_a_least_value() -> None:
    assert is_natural_size(S // 2 - 1, {"s": 2})
    assert not is_natural_size(S // 2 - 1, {"s": 1})
    assert not is_natural_size(S // 2 - 1, {})
    assert is_natural_size(S * T - S - T + 1, {"s": 1, "t": 1})
    assert not is_natural_size(S * T - 5, {"s": 2, "t": 2})
    assert not is_natural_size(S - T, {"s": 9, "t": 2})


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_no_answer_is_wrong(seed: int) -> None:
    rand = random.Random(seed)
    least = {"s": rand.randrange(-3, 4), "t": rand.randrange(-3, 4)}
    value: IntLike = rand.randrange(-6, 7)
    for _ in range(rand.randrange(1, 4)):
        term = rand.choice([S, T, S * T, (S + rand.randrange(-4, 4)) // 2, (T - S) // 3, (S // 2 + T) // 5])
        value = value + rand.randrange(-6, 7) * term
    if is_natural_size(value, least):
        for s in range(least["s"], least["s"] + 12):
            for t in range(least["t"], least["t"] + 12):
                assert evaluate(value, {Symbol("s"): s, Symbol("t"): t}) >= 0, (value, least, s, t)


def test_relations_that_are_relied_on_bound_sizes() -> None:
    env = ShapeEnv()
    s, t, data = env.create_symbol(9), env.create_symbol(9, low=None), env.create_symbol(None, low=0)
    names = [one.as_symbol.name for one in (s, t, data)]
    assert [least_of(name, env) for name in names] == [2, None, None]
    env.decide(Relation("<", 6, 2 * s))
    env.decide(Relation("<=", t, s))
    assert [least_of(name, env) for name in names] == [4, None, None]
    env.decide(Relation("<=", 5, t))
    assert [least_of(name, env) for name in names] == [4, 5, None]
