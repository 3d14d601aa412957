"""What is known, learned and expected of symbols that come from data."""

from __future__ import annotations

import pytest

from fx_interface import UnbackedSymbolError
from fx_interface.symbols import Range, Relation, RelationOp, ShapeEnv, evaluate, indicator, symbol


def test_stated_facts_answer_other_questions() -> None:
    env = ShapeEnv()
    one, other = env.create_symbol(None, low=0), env.create_symbol(None, low=0)
    env.learn(Relation("<=", one, 4))
    assert one.as_symbol is not None
    assert env.symbols[one.as_symbol].range == Range(0, 4)
    assert env.decide(Relation("<", one, 5))
    assert not env.decide(Relation("<", 6, one + 2))
    env.learn(Relation("<", one + other, 10))
    assert env.known(Relation("<=", one + other, 9)) is True
    assert env.known(Relation("==", one + other, 10)) is False
    assert env.known(Relation("<", one + other, 9)) is None
    env.learn(Relation("!=", other, 0))
    assert env.decide(Relation("<", 0, other))
    assert not env.guards


def test_equalities_replace_what_is_known_last() -> None:
    env = ShapeEnv()
    first, second = env.create_symbol(None, low=0), env.create_symbol(None, low=0)
    env.learn(Relation("==", first + second, 8))
    assert env.simplify(second) == 8 - first
    assert env.simplify(first) is first
    assert env.decide(Relation("==", first * 2 + second * 2, 16))


def test_what_an_operator_requires_is_taken_to_hold_and_to_be_checked() -> None:
    env = ShapeEnv()
    size, hinted = env.create_symbol(None, low=None), env.create_symbol(6)
    assert env.expect(Relation("<=", 0, size))
    assert env.expect(Relation("<=", 0, size))
    assert env.expected == [Relation("<=", 0, size)]
    assert not env.expect(Relation("==", hinted, 5))
    assert len(env.guards) == 1, "a size that is known is asked as always"
    with pytest.raises(UnbackedSymbolError):
        env.decide(Relation("==", size, 1))
    assert env.unanswered is not None


def test_layouts_take_sizes_to_be_at_least_two() -> None:
    env = ShapeEnv()
    size = env.create_symbol(None, low=0)
    assert env.known(Relation("<", 1, size)) is None
    assert env.known_in_general(Relation("<", 1, size)) is True
    assert env.known_in_general(Relation("<", size, 5)) is None


@pytest.mark.parametrize("op", ["==", "!=", "<", "<="])
def test_a_relation_as_an_integer(op: RelationOp) -> None:
    one, other = symbol("u0"), symbol("u1")
    relation = Relation(op, one * 2, other + 1)
    shown = indicator(relation)
    for x in range(-3, 4):
        for y in range(-5, 6):
            values = {
                atom: v for atom, v in zip((one.as_symbol, other.as_symbol), (x, y), strict=True) if atom
            }
            assert (evaluate(shown, values) != 0) is relation.holds(values)


def test_an_earlier_trace_names_the_symbol() -> None:
    env = ShapeEnv()
    first = env.create_symbol(None, low=0)
    env.again = first.as_symbol
    assert env.create_symbol(None, low=0) is first
    assert env.create_symbol(None, low=0) is not first
    assert env.created == 3
