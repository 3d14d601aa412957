"""Lowering: cheap nodes first, leaves of unchanged dicts last, programs for shapes."""

from __future__ import annotations

import fx_guards
from fx_guards import _native
from fx_guards.lower import Lowering, shape_program
from fx_interface.source import InstanceDictSource, ItemSource, LocalSource
from fx_interface.symbols import Relation, Symbol, symbol

X = LocalSource("x")


def test_leaves_that_last_with_their_dict_come_last() -> None:
    table = InstanceDictSource(X)
    facts = [
        fx_guards.EqualsConstant(ItemSource(table, "flag"), True),
        fx_guards.Length(ItemSource(table, "items"), 2),
        fx_guards.TypeIs(ItemSource(table, "child"), Lowering),
    ]
    roots, relations, slots = Lowering(("x",)).evaluator(fx_guards.GuardSet(facts))
    (_, _, _, _, _, _, (contents,), live_of_root) = roots[0]
    assert (live_of_root, relations, slots) == (1, (), 0)
    assert [child[1] for child in contents[6]] == ["items", "child", "flag"]
    assert contents[7] == 2


def test_cheap_roots_first() -> None:
    big = [fx_guards.TypeIs(ItemSource(X, i), int) for i in range(20)]
    roots, _, _ = Lowering(("x", "y")).evaluator(
        fx_guards.GuardSet([*big, fx_guards.TypeIs(LocalSource("y"), int)])
    )
    assert [root[1] for root in roots] == ["y", "x"]


def test_a_shape_program_is_a_stack_machine() -> None:
    guard = fx_guards.ShapeRelations(X, (Symbol("s"),), (), (Relation("<=", 2 * symbol("s"), 10),))
    ops = _native.SHAPE_OPS
    assert shape_program(guard, (0,)) == (
        *(ops["slot"], 0, ops["slot"], 0, ops["=="], 0),
        *(ops["const"], 2, ops["slot"], 0, ops["*"], 0, ops["const"], 10, ops["<="], 0),
    )
