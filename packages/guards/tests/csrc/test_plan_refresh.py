"""A plan goes on where what changed does not matter, and never takes a new object for an old one at its address."""

from __future__ import annotations

import sys
import threading
import types
from typing import Any

import pytest

import fx_guards
from fx_interface.source import (
    AttrSource,
    ImportedModuleSource,
    InstanceDictSource,
    ItemSource,
    LocalSource,
    Source,
)

pytestmark = pytest.mark.skipif(not fx_guards.SKIPS_BY_DICT_VERSION, reason="plans need versions of dicts")
X = LocalSource("x")


class Thing:
    """An object with attributes."""


def target(x: Any = None) -> None:
    """The function at whose entry the guards are checked."""


def entry(source: Source, *keys: Any) -> Source:
    """``source.__dict__[first key][second key]...``"""
    source = InstanceDictSource(source)
    for key in keys:
        source = ItemSource(source, key)
    return source


def planned(facts: list[Any], thing: Any) -> Any:
    """An evaluator that holds and has a plan without anything that could run user code."""
    evaluator = fx_guards.build(facts, varnames=("x",))
    for _ in range(4):
        assert evaluator.check_call(target, thing)
    assert evaluator.plan is not None
    assert evaluator.plan["late"] == 0, evaluator.plan
    return evaluator


def test_attributes_that_do_not_matter_change_at_every_call() -> None:
    thing = Thing()
    thing.k, thing.count = 1, 0
    table: dict[str, Any] = {"a": 1.5, "steps": 0}
    thing.table = table
    facts: list[Any] = [
        fx_guards.TypeIs(X, Thing),
        fx_guards.EqualsConstant(entry(X, "k"), 1),
        fx_guards.KeyAbsent(InstanceDictSource(X), "missing"),
        fx_guards.EqualsConstant(entry(X, "table", "a"), 1.5),
    ]
    evaluator = planned(facts, thing)
    for number in range(50):
        thing.count = number
        table["steps"] = number
        assert evaluator.check_call(target, thing)
        assert evaluator.plan is not None
    for change, undo in (
        (lambda: setattr(thing, "k", True), lambda: setattr(thing, "k", 1)),
        (lambda: setattr(thing, "missing", 0), lambda: delattr(thing, "missing")),
        (lambda: table.update(a=-1.5), lambda: table.update(a=float("1.5"))),
        (lambda: setattr(thing, "table", {"a": 2}), lambda: setattr(thing, "table", table)),
        (
            lambda: setattr(thing, "__class__", type("Other", (), {})),
            lambda: setattr(thing, "__class__", Thing),
        ),
    ):
        change()
        assert not evaluator.check_call(target, thing)
        undo()
        assert evaluator.check_call(target, thing)


def test_tuples_that_take_turns_at_one_address() -> None:
    thing = Thing()
    thing.shape = (1, 2)
    source = entry(X, "shape")
    facts = [
        fx_guards.TypeIs(source, tuple),
        fx_guards.Length(source, 2),
        fx_guards.EqualsConstant(ItemSource(source, 0), 1),
    ]
    evaluator = planned(facts, thing)
    for number in range(200):
        del thing.shape
        thing.shape = tuple([number % 3, 2, 3][: 2 + number % 2])
        assert evaluator.check_call(target, thing) is (number % 3 == 1 and number % 2 == 0)


def test_lists_and_the_tuples_in_them() -> None:
    thing = Thing()
    thing.items = [1, (1, 2), Thing()]
    thing.items[2].k = 5
    source = entry(X, "items")
    facts = [
        fx_guards.TypeIs(source, list),
        fx_guards.Length(source, 3),
        fx_guards.EqualsConstant(ItemSource(source, 0), 1),
        fx_guards.EqualsConstant(ItemSource(ItemSource(source, 1), 0), 1),
        fx_guards.EqualsConstant(AttrSource(ItemSource(source, -1), "k"), 5),
    ]
    evaluator = fx_guards.build(facts, varnames=("x",))
    reference = fx_guards.ReferenceEvaluator(facts, ("x",))
    for number in range(300):
        thing.items[0] = 1 if number % 7 else 2.0
        thing.items[1] = None
        thing.items[1] = (1 if number % 5 else 2, number)
        thing.items[2] = None
        thing.items[2] = Thing()
        thing.items[2].k = 5 if number % 11 else 6
        expected = reference.check_call(target, thing)
        for _ in range(3):
            assert evaluator.check_call(target, thing) is expected


def test_modules_that_take_turns_under_one_name() -> None:
    name = "guards_test_turns"
    facts = [fx_guards.EqualsConstant(entry(ImportedModuleSource(name), "k"), 1)]
    evaluator = fx_guards.build(facts)
    try:
        for number in range(200):
            sys.modules.pop(name, None)
            sys.modules[name] = types.ModuleType(name)
            sys.modules[name].k = number % 2  # type: ignore[attr-defined]
            for _ in range(3):
                assert evaluator.check_call(target) is (number % 2 == 1)
    finally:
        sys.modules.pop(name, None)


def test_checks_from_many_threads_while_things_change() -> None:
    class Slow:
        @property
        def answer(self) -> int:
            return sum(range(50)) * 0 + 1

    thing = Slow()
    thing.k = 1  # type: ignore[attr-defined]
    thing.items = [1]  # type: ignore[attr-defined]
    facts = [
        fx_guards.EqualsConstant(entry(X, "k"), 1),
        fx_guards.EqualsConstant(AttrSource(X, "answer"), 1),
        fx_guards.EqualsConstant(ItemSource(entry(X, "items"), 0), 1),
    ]
    evaluator = fx_guards.build(facts, varnames=("x",))
    stop = threading.Event()
    wrong: list[Any] = []

    def check() -> None:
        while not stop.is_set():
            if evaluator.check_call(target, thing) not in (True, False):
                wrong.append("no answer")

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=check) for _ in range(4)]
    try:
        for thread in threads:
            thread.start()
        for number in range(3000):
            thing.k = number  # type: ignore[attr-defined]
            thing.items = [number]  # type: ignore[attr-defined]
            thing.__dict__["other"] = number
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    thing.k, thing.items = 1, [1]  # type: ignore[attr-defined]
    assert not wrong
    assert evaluator.check_call(target, thing)
    thing.k = 2  # type: ignore[attr-defined]
    assert not evaluator.check_call(target, thing)
