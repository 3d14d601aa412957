"""Guards on plain values: type, identity, constant, truth."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import fx_guards
from fx_interface.source import LocalSource, Scope

X = LocalSource("x")


class Owner:
    """Something that can be weakly referenced."""


def test_type_is_exact() -> None:
    guard = fx_guards.TypeIs(X, int)
    assert guard.holds(1)
    assert not guard.holds(True)
    assert guard.explain("a") == "expected type int, got str"


@pytest.mark.parametrize(
    "expected, other",
    [(1, True), (1, 1.0), (0.0, -0.0), ((1,), (True,)), ("a", b"a"), ((0.0,), (-0.0,)), (None, False)],
)
def test_constants_that_python_calls_equal_are_not_the_same(expected: Any, other: Any) -> None:
    guard = fx_guards.EqualsConstant(X, expected)
    assert guard.holds(expected)
    assert not guard.holds(other)
    assert guard != fx_guards.EqualsConstant(X, other)


def test_nan_is_nan() -> None:
    guard = fx_guards.EqualsConstant(X, float("nan"))
    assert guard.holds(float("nan"))
    assert guard == fx_guards.EqualsConstant(X, float("nan"))


def test_a_constant_whose_equality_raises_does_not_hold() -> None:
    class Bad:
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            raise RuntimeError

    guard = fx_guards.EqualsConstant(X, Bad())
    assert not guard.holds(Bad())
    assert guard.holds(guard.expected)


def test_object_identity_is_weak_where_possible() -> None:
    owner = Owner()
    guard = fx_guards.IsObject(X, owner)
    assert guard.holds(owner)
    assert not guard.holds(Owner())
    assert [type(one) for one in weakref.getweakrefs(owner)] == [fx_guards.GuardReference]
    del owner
    gc.collect()
    assert not guard.alive
    assert guard.target is None
    assert not guard.holds(None)
    assert "no longer exists" in guard.explain(1)


def test_an_object_without_weak_references_is_held() -> None:
    value = (1, object())
    guard = fx_guards.IsObject(X, value)
    assert guard.alive
    assert guard.holds(value)
    assert not guard.holds((1, value[1]))


def test_truthiness_asks_no_user_code() -> None:
    class Loud:
        def __bool__(self) -> bool:
            raise AssertionError

    assert fx_guards.Truthiness(X, True).holds([0])
    assert fx_guards.Truthiness(X, False).holds("")
    assert not fx_guards.Truthiness(X, True).holds(Loud())
    assert fx_guards.Truthiness(X, True).explain([]) == "expected a true value, got []"


@pytest.mark.parametrize(
    "target, words", [(True, "expected True, got False"), (None, "expected None, got False")]
)
def test_constants_are_named_as_values(target: object, words: str) -> None:
    assert fx_guards.IsObject(X, target).explain(False) == words
    assert "the very object" in fx_guards.IsObject(X, test_constants_are_named_as_values).explain(None)


@pytest.mark.parametrize("plain_only", [False, True])
def test_weak_references_to_a_value(plain_only: bool) -> None:
    class Other(weakref.ref[Any]):
        pass

    guard = fx_guards.Unreferenced(X, plain_only)
    evaluator = fx_guards.build([guard], varnames=("x",))

    def holds(value: Any) -> bool:
        assert evaluator.check(Scope({"x": value}, {})) is guard.holds(value)
        return guard.holds(value)

    owner = Owner()
    assert holds(owner)
    known: list[Any] = [fx_guards.GuardReference(owner)]
    assert holds(owner)
    known.append(Other(owner))
    assert holds(owner) is plain_only
    known.append(weakref.ref(owner))
    assert not holds(owner)
    assert "weak reference" in guard.explain(owner)
    known.clear()
    assert holds(owner)
    assert holds(3)


@pytest.mark.parametrize("plain_only", [False, True])
def test_references_by_which_stock_counts_modules_do_not_tell_a_program(plain_only: bool) -> None:
    guard = fx_guards.Unreferenced(X, plain_only)
    evaluator = fx_guards.build([guard], varnames=("x",))
    owner = Owner()
    counting = type(lambda reference: None)(
        (lambda reference: None).__code__, {"__name__": "torch._dynamo.utils"}
    )
    known = [weakref.ref(owner, counting)]
    assert evaluator.check(Scope({"x": owner}, {}))
    assert guard.holds(owner)
    known.append(weakref.ref(owner, lambda reference: None))
    assert not evaluator.check(Scope({"x": owner}, {}))
    assert not guard.holds(owner)
