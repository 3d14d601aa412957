"""What equalities that make expressions 0 say about others."""

from __future__ import annotations

import pytest

from fx_interface.symbols import Relation, ShapeEnv, floordiv, mod, zero_facts
from fx_interface.symbols.zero_facts import ZeroFacts


def test_quotients_of_known_divisors_are_whole() -> None:
    env = ShapeEnv()
    size = env.create_symbol(12)
    facts = ZeroFacts()
    assert not facts
    facts.add(mod(size, 4), {})
    assert facts
    assert facts.whole(floordiv(size, 4) * 4 + 1) == size + 1
    assert facts.whole(floordiv(size, 3) * 3) == floordiv(size, 3) * 3
    assert facts.make_zero(mod(size, 4) * 2)
    assert not facts.make_zero(size - 12)


def test_what_symbols_are_replaced_by_counts() -> None:
    env = ShapeEnv()
    rows, columns = env.create_symbol(8), env.create_symbol(16)
    env.require(Relation("==", mod(columns, 4), 0))
    env.require(Relation("==", columns, rows * 2))
    assert env.simplify(floordiv(rows * 2, 4) * 4) == rows * 2
    assert env.known(Relation("==", mod(rows * 2, 4), 0)) is True


def test_a_question_costs_no_more_for_facts_that_say_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    env = ShapeEnv()
    sizes = [env.create_symbol(16) for _ in range(30)]
    for size in sizes:
        env.require(Relation("==", mod(size, 4), 0))
    calls = []

    def counted(*args: object) -> object:
        calls.append(args)
        return original(*args)

    original = zero_facts.substitute
    monkeypatch.setattr(zero_facts, "substitute", counted)
    monkeypatch.setattr(zero_facts, "without_quotient", counted)
    for size in sizes[1:]:
        assert env.known(Relation("==", size, sizes[0] * 3 + 5)) is None
    assert not calls
