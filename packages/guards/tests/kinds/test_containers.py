"""Guards on containers and attributes."""

from __future__ import annotations

import sys
from collections import OrderedDict, defaultdict
from typing import Any

import pytest

import fx_guards
from fx_interface.source import LocalSource

X = LocalSource("x")


def test_length_of_anything_sized() -> None:
    assert fx_guards.Length(X, 2).holds({1: 1, 2: 2})
    assert not fx_guards.Length(X, 2).holds([1])
    assert not fx_guards.Length(X, 2).holds(3)
    assert fx_guards.Length(X, 2).explain([1]) == "expected length 2, got 1"
    assert "has none" in fx_guards.Length(X, 2).explain(3)


def test_keys_are_exact_and_ordered() -> None:
    guard = fx_guards.DictKeys(X, ("a", 1))
    assert guard.holds({"a": 0, 1: 0})
    assert not guard.holds({1: 0, "a": 0})
    assert not guard.holds({"a": 0, True: 0})
    assert not guard.holds(["a", 1])
    assert guard.explain({1: 0, "a": 0}) == "dict keys changed: their order"
    assert guard.explain({"a": 0, "b": 0}) == "dict keys changed: missing [1]; new ['b']"


def test_an_ordered_dicts_own_order_counts() -> None:
    table = OrderedDict(a=1, b=2)
    guard = fx_guards.DictKeys(X, ("a", "b"))
    evaluator = fx_guards.build([guard], varnames=("x",))
    assert guard.holds(table)
    assert evaluator.check_call(_function, table)
    table.move_to_end("a")
    assert not guard.holds(table)
    assert not evaluator.check_call(_function, table)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_an_ordered_dict_is_compared_without_python(count: int) -> None:
    """Modules keep their hooks in such tables."""
    table = OrderedDict((number, None) for number in range(count))
    evaluator = fx_guards.build([fx_guards.DictKeys(X, tuple(table))], varnames=("x",))
    called = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
    try:
        held = evaluator.check_call(_function, table)
    finally:
        sys.setprofile(None)
    assert held
    assert not called
    table[count] = None
    assert not evaluator.check_call(_function, table)
    del table[count]
    if count:
        table["other"] = table.pop(count - 1)
        assert not evaluator.check_call(_function, table)


def test_presence_never_calls_missing() -> None:
    table: Any = defaultdict(int)
    assert not fx_guards.KeyPresent(X, "a").holds(table)
    assert fx_guards.KeyAbsent(X, "a").holds(table)
    assert len(table) == 0
    assert not fx_guards.KeyAbsent(X, "a").holds(["a"])
    assert not fx_guards.KeyPresent(X, []).holds({})
    assert not fx_guards.KeyAbsent(X, []).holds({})


def test_entries_are_the_very_objects() -> None:
    table: Any = {"a": [], "b": 1, "c": 2}
    guard = fx_guards.DictEntries(fx_guards.known_object(table), (("a", table["a"]), ("b", 1)))
    evaluator = fx_guards.build([guard], varnames=("x",))

    def agree(expected: bool) -> None:
        assert guard.holds(table) is expected
        for _ in range(4):  # walked, and then by the plan
            assert evaluator.check_call(_function, 0) is expected

    kept = table["a"]
    agree(True)
    table["c"] = 3
    agree(True)
    table["a"] = []
    agree(False)
    assert guard.explain(table) == "other objects under the names a"
    table["a"] = kept
    agree(True)
    del table["b"]
    agree(False)
    assert not guard.holds([])
    assert guard.explain([]) == "expected a dict, got []"


def test_attributes() -> None:
    class Raises:
        @property
        def bad(self) -> int:
            raise RuntimeError

    for name, value, present, absent in [
        ("real", 1, True, False),
        ("no", 1, False, True),
        ("bad", Raises(), False, False),
    ]:
        facts = [fx_guards.AttributePresent(X, name), fx_guards.AttributeAbsent(X, name)]
        assert [f.holds(value) for f in facts] == [present, absent]
        native = [fx_guards.build([f], varnames=("x",)).check_call(_function, value) for f in facts]
        assert native == [present, absent]


def _function(x: Any) -> None: ...
