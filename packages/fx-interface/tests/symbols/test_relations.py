"""Relations between sizes."""

from __future__ import annotations

import pytest

from fx_interface.symbols import Relation, RelationOp, Symbol, evaluate, indicator, symbol

A, B = symbol("a"), symbol("b")
OPERATORS: tuple[RelationOp, ...] = ("==", "!=", "<", "<=")


@pytest.mark.parametrize("op", OPERATORS)
def test_a_relation_its_opposite_and_its_indicator(op: RelationOp) -> None:
    relation = Relation(op, A, B + 1)
    for a in range(-3, 4):
        for b in range(-3, 4):
            values = {Symbol("a"): a, Symbol("b"): b}
            holds = {"==": a == b + 1, "!=": a != b + 1, "<": a < b + 1, "<=": a <= b + 1}[op]
            assert relation.holds(values) is holds
            assert relation.negated().holds(values) is not holds
            assert (evaluate(indicator(relation), values) != 0) is holds


def test_symbols_of_both_sides() -> None:
    assert Relation("<", A, B * 2).symbols == {Symbol("a"), Symbol("b")}
    assert Relation("<", 1, 2).symbols == frozenset()


def test_the_text() -> None:
    assert str(Relation("<=", A, 3)) == "a <= 3"
