"""What a check skips while nothing has changed, it looks at again as soon as something has."""

from __future__ import annotations

import gc
import sys
import types
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

import fx_guards
from fx_interface.source import (
    AttrSource,
    DictKeySource,
    ImportedModuleSource,
    InstanceDictSource,
    ItemSource,
    LocalSource,
)


class Thing:
    """An object with attributes."""

    shared = 1


@pytest.fixture(autouse=True)
def _restore_class() -> Iterator[None]:
    yield
    Thing.shared = 1


X = LocalSource("x")


def target(x: Any = None, y: Any = None) -> None:
    """The function at whose entry the guards are checked."""


def call(evaluator: Any, *slots: Any) -> bool:
    """Checks often enough that a plan is made and used; the answers must not differ."""
    answers: set[bool] = {evaluator.check_call(target, *slots) for _ in range(4)}
    assert len(answers) == 1
    return answers.pop()


def test_every_change_to_a_frozen_dict_is_seen() -> None:
    thing = Thing()
    thing.table = {"a": 1, "b": 2}  # type: ignore[attr-defined]
    table = ItemSource(InstanceDictSource(LocalSource("x")), "table")
    evaluator = fx_guards.build([fx_guards.EqualsConstant(ItemSource(table, "a"), 1)], varnames=("x",))
    assert call(evaluator, thing)
    thing.table["a"] = 2  # type: ignore[attr-defined]
    assert not call(evaluator, thing)
    thing.table["a"] = 1  # type: ignore[attr-defined]
    assert call(evaluator, thing)
    thing.table = {"a": 3}  # type: ignore[attr-defined]
    assert not call(evaluator, thing)
    del thing.table  # type: ignore[attr-defined]
    assert not call(evaluator, thing)


def test_a_new_object_at_an_old_address_is_checked_afresh() -> None:
    source = AttrSource(AttrSource(LocalSource("x"), "inner"), "value")
    evaluator = fx_guards.build([fx_guards.EqualsConstant(source, 1)], varnames=("x",))
    for number in range(300):
        outer, inner = Thing(), Thing()
        outer.inner = inner  # type: ignore[attr-defined]
        inner.value = number % 2  # type: ignore[attr-defined]
        assert call(evaluator, outer) is (number % 2 == 1)
        del outer, inner


def test_an_evaluator_keeps_no_argument_alive() -> None:
    outer = Thing()
    outer.inner = Thing()  # type: ignore[attr-defined]
    inner = AttrSource(LocalSource("x"), "inner")
    evaluator = fx_guards.build([fx_guards.TypeIs(inner, Thing)], varnames=("x",))
    assert call(evaluator, outer)
    reference = weakref.ref(outer.inner)  # type: ignore[attr-defined]
    del outer
    gc.collect()
    assert reference() is None


def test_a_property_that_changes_the_structure_while_it_is_read() -> None:
    class Trap:
        def __init__(self) -> None:
            self.inner = Thing()
            self.inner.value = 1  # type: ignore[attr-defined]

        @property
        def drop(self) -> int:
            self.inner = Thing()
            self.inner.value = 1  # type: ignore[attr-defined]
            gc.collect(0)
            return 0

    root = LocalSource("x")
    facts = [
        fx_guards.EqualsConstant(AttrSource(root, "drop"), 0),
        fx_guards.EqualsConstant(AttrSource(AttrSource(root, "inner"), "value"), 1),
        fx_guards.AttributePresent(AttrSource(root, "inner"), "value"),
    ]
    evaluator = fx_guards.build(facts, varnames=("x",))
    trap = Trap()
    for _ in range(50):
        assert evaluator.check_call(target, trap)


def test_a_check_inside_a_check() -> None:
    evaluators: list[Any] = []

    class Nested:
        depth = 0

        @property
        def again(self) -> int:
            if Nested.depth < 3:
                Nested.depth += 1
                inner = Nested()
                inner.value = Nested.depth % 2  # type: ignore[attr-defined]
                evaluators[0].check_call(target, inner)
                Nested.depth -= 1
            return 1

    root = LocalSource("x")
    facts = [
        fx_guards.EqualsConstant(AttrSource(root, "again"), 1),
        fx_guards.EqualsConstant(AttrSource(root, "value"), 1),
    ]
    evaluators.append(fx_guards.build(facts, varnames=("x",)))
    outer = Nested()
    outer.value = 1  # type: ignore[attr-defined]
    for _ in range(10):
        assert evaluators[0].check_call(target, outer)


def test_class_attribute_changes_are_seen() -> None:
    evaluator = fx_guards.build(
        [fx_guards.EqualsConstant(AttrSource(LocalSource("x"), "shared"), 1)], varnames=("x",)
    )
    thing = Thing()
    assert call(evaluator, thing)
    Thing.shared = 5
    assert not call(evaluator, thing)
    Thing.shared = 1
    assert call(evaluator, thing)
    thing.shared = 7
    assert not call(evaluator, thing)
    del thing.shared
    Thing.shared = property(lambda self: 1)  # type: ignore[assignment]
    assert call(evaluator, thing)


def test_module_globals_below_an_imported_module() -> None:
    module = types.ModuleType("guards_test_module")
    module.limit = 3  # type: ignore[attr-defined]
    sys.modules["guards_test_module"] = module
    try:
        root = ImportedModuleSource("guards_test_module")
        facts = [
            fx_guards.EqualsConstant(AttrSource(root, "limit"), 3),
            fx_guards.EqualsConstant(ItemSource(InstanceDictSource(root), "limit"), 3),
        ]
        evaluator = fx_guards.build(facts)
        assert call(evaluator)
        module.limit = 4  # type: ignore[attr-defined]
        assert not call(evaluator)
    finally:
        del sys.modules["guards_test_module"]
    assert not call(evaluator)


def test_dict_versions_off_gives_the_same_answers() -> None:
    from fx_guards import _native

    thing = Thing()
    thing.a = 1  # type: ignore[attr-defined]
    evaluator = fx_guards.build(
        [fx_guards.EqualsConstant(AttrSource(LocalSource("x"), "a"), 1)], varnames=("x",)
    )
    assert call(evaluator, thing)
    _native.use_dict_versions(False)
    try:
        assert call(evaluator, thing)
        thing.a = 2  # type: ignore[attr-defined]
        assert not call(evaluator, thing)
    finally:
        _native.use_dict_versions(fx_guards.SKIPS_BY_DICT_VERSION)
    assert not call(evaluator, thing)
    assert fx_guards.SKIPS_BY_DICT_VERSION


class Reversed(dict[str, int]):
    """A dict with an order and items of its own."""

    def __iter__(self) -> Iterator[str]:
        return reversed(list(self.keys()))

    def __getitem__(self, key: str) -> int:
        return -super().__getitem__(key)


def test_a_defaultdict_is_read_as_a_dict() -> None:
    """As ``Optimizer.state`` is."""
    table: Any = defaultdict(int, a=1, b=2)
    first, last, value = DictKeySource(X, 0), DictKeySource(X, -1), ItemSource(X, "a")
    facts = [(first, "a"), (last, "b"), (value, 1)]
    evaluator = fx_guards.build([fx_guards.EqualsConstant(*fact) for fact in facts], varnames=("x",))
    assert call(evaluator, table)
    assert not call(evaluator, defaultdict(int, b=2, a=1))
    table["a"] = 3
    assert not call(evaluator, table)
    table["a"] = 1
    assert call(evaluator, table)
    del table["a"]
    assert not call(evaluator, table)
    assert dict(table) == {"b": 2}  # no guard makes an entry


def test_a_dict_class_with_an_order_of_its_own_is_asked() -> None:
    evaluator = fx_guards.build([fx_guards.EqualsConstant(DictKeySource(X, 0), "a")], varnames=("x",))
    table = OrderedDict(a=1, b=2)
    assert call(evaluator, table)
    table.move_to_end("a")
    assert not call(evaluator, table)
    assert not call(evaluator, Reversed(a=1, b=2))
    negative = fx_guards.build([fx_guards.EqualsConstant(ItemSource(X, "a"), -1)], varnames=("x",))
    assert call(negative, Reversed(a=1))
