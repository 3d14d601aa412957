"""Explanations: the guard, its expression, the reason and the user's line."""

from __future__ import annotations

import fx_guards
from fx_interface.errors import UserLocation
from fx_interface.source import AttrSource, ItemSource, LocalSource, Scope

X = LocalSource("x")


def test_the_first_failure_is_the_first_given() -> None:
    where = UserLocation("model.py", 7, "forward")
    facts = [
        fx_guards.TypeIs(X, dict),
        fx_guards.EqualsConstant(ItemSource(X, "flag"), True, where=where),
        fx_guards.Length(X, 5),
    ]
    scope = Scope({"x": {"flag": False}}, {})
    failure = fx_guards.first_failure(facts, scope)
    assert failure is not None
    assert str(failure) == "x['flag']: expected True, got False\n  relied on at model.py:7 in forward"
    assert [f.guard for f in fx_guards.failures(facts, scope)] == facts[1:]
    assert fx_guards.first_failure(facts[:1], scope) is None


def test_a_value_that_cannot_be_read() -> None:
    failure = fx_guards.first_failure([fx_guards.TypeIs(AttrSource(X, "gone"), int)], Scope({"x": 1}, {}))
    assert failure is not None
    assert failure.reason.startswith("cannot be read any more: AttributeError")


def test_a_relation_names_every_expression() -> None:
    failure = fx_guards.first_failure(
        [fx_guards.SameObject(X, LocalSource("y"))], Scope({"x": [], "y": []}, {})
    )
    assert failure is not None
    assert failure.expression == "x, y"
