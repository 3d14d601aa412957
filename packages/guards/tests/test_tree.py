"""The tree: shared prefixes are read once, repeats are dropped, relations get slots."""

from __future__ import annotations

import fx_guards
from fx_guards.tree import is_relation, sources_of
from fx_interface.source import AttrSource, LocalSource

X, Y = LocalSource("x"), LocalSource("y")


def test_shared_prefixes_share_nodes() -> None:
    inner = AttrSource(X, "a")
    facts = [fx_guards.TypeIs(AttrSource(inner, "b"), int), fx_guards.TypeIs(AttrSource(inner, "c"), int)]
    tree = fx_guards.GuardSet([*facts, facts[0]])
    assert tree.guards == tuple(facts)
    assert [n.source.expression for root in tree.roots for n in root.walk()] == ["x", "x.a", "x.a.b", "x.a.c"]


def test_relations_have_slots() -> None:
    same = fx_guards.SameObject(X, Y)
    tree = fx_guards.GuardSet([same, fx_guards.TypeIs(X, int)])
    assert tree.relations == [(0, same)]
    assert [tree.node(source).slot for source in (X, Y)] == [0, 1]
    assert tree.slot_count == 2
    assert is_relation(same)
    assert sources_of(fx_guards.TypeIs(X, int)) == (X,)


def test_reads_happen_once() -> None:
    class Counting:
        reads = 0

        @property
        def a(self) -> int:
            Counting.reads += 1
            return 1

    source = AttrSource(X, "a")
    facts = [
        fx_guards.TypeIs(source, int),
        fx_guards.EqualsConstant(source, 1),
        fx_guards.SameObject(source, source),
    ]
    evaluator = fx_guards.build(facts, varnames=("x",))
    assert evaluator.check_call(test_reads_happen_once, Counting())
    assert Counting.reads == 1
