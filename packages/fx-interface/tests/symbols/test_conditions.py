"""Conditions that join relations."""

from __future__ import annotations

from fx_interface.symbols import Relation, ShapeEnv
from fx_interface.symbols.conditions import AllOf, AnyOf, Not, decide, expect, hinted, known


def test_what_ranges_settle_is_known() -> None:
    env = ShapeEnv()
    size = env.create_symbol(5)  # at least 2
    holds, fails, open_ = Relation("<", 1, size), Relation("<", size, 0), Relation("<", size, 9)
    assert known(holds, env) is True
    assert known(AllOf((holds, open_)), env) is None
    assert known(AllOf((open_, fails)), env) is False
    assert known(AnyOf((open_, holds)), env) is True
    assert known(AnyOf((open_, fails)), env) is None
    assert known(Not(fails), env) is True
    assert known(Not(open_), env) is None
    assert not env.guards


def test_what_hints_settle_is_recorded() -> None:
    env = ShapeEnv()
    size = env.create_symbol(5)
    assert decide(AllOf((Relation("<", size, 9), Not(Relation("==", size, 7)))), env)
    assert not decide(AnyOf((False, Relation("<", size, 3))), env)
    assert [str(guard.relation) for guard in env.guards] == [f"{size} < 9", f"{size} != 7", f"3 <= {size}"]


def test_what_only_data_tell_is_left_to_a_check() -> None:
    env = ShapeEnv()
    size, count = env.create_symbol(5), env.create_symbol(None, low=0)
    assert expect(AllOf((Relation("<", count, 4), Relation("<", size, 9))), env)
    assert [str(relation) for relation in env.expected] == [f"{count} < 4"]


def test_hints() -> None:
    env = ShapeEnv()
    size, count = env.create_symbol(5), env.create_symbol(None)
    assert hinted(AnyOf((Relation("<", size, 9), True)), env)
    assert not hinted(Not(AllOf((Relation("<", size, 9), Relation("<", count, 9)))), env)
