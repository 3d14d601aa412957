"""Versions of dicts: whatever happens to a dict, whoever else watches it, and when nobody else may watch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fx_guards
from fx_guards import _native
from fx_interface.source import InstanceDictSource, ItemSource, LocalSource

KEYS = st.sampled_from(["a", "b", "c", "new", 1, None])


class Holder:
    """An object whose attributes lie inline until its dict is asked for."""

    def __init__(self) -> None:
        self.a = 0
        self.b = 1


def _store(holder: Holder, key: Any, value: Any) -> None:
    for _ in range(20):  # so often that the interpreter specialises the store
        holder.a = value


def _delete_attribute(holder: Holder, key: Any, value: Any) -> None:
    if isinstance(key, str) and key in vars(holder):
        delattr(holder, key)


def _popitem(holder: Holder, key: Any, value: Any) -> None:
    if vars(holder):
        vars(holder).popitem()


CHANGES: dict[str, Callable[[Holder, Any, Any], Any]] = {
    "store": _store,
    "setattr": lambda h, key, value: setattr(h, str(key), value),
    "object": lambda h, key, value: object.__setattr__(h, str(key), value),
    "delattr": _delete_attribute,
    "setitem": lambda h, key, value: vars(h).__setitem__(key, value),
    "pop": lambda h, key, value: vars(h).pop(key, None),
    "popitem": _popitem,
    "setdefault": lambda h, key, value: vars(h).setdefault(key, value),
    "update": lambda h, key, value: vars(h).update({key: value}),
    "merge": lambda h, key, value: vars(h).__ior__({key: value}),
    "clear": lambda h, key, value: vars(h).clear(),
    "replace": lambda h, key, value: setattr(h, "__dict__", {str(key): value}),
    "look": lambda h, key, value: vars(h).get(key),
    "copy": lambda h, key, value: vars(h).copy(),
}


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(CHANGES)), KEYS, st.integers(0, 3)), max_size=12))
def test_a_version_stands_for_one_content(steps: list[tuple[str, Any, int]]) -> None:
    holder = Holder()
    contents: dict[int, list[tuple[Any, int]]] = {}
    for name, key, value in steps:
        CHANGES[name](holder, key, value)
        held = [(k, id(v)) for k, v in vars(holder).items()]
        version = _native.dict_version(vars(holder))
        if version:
            assert contents.setdefault(version, held) == held


def test_an_unchanged_dict_keeps_its_version() -> None:
    if not fx_guards.SKIPS_BY_DICT_VERSION:
        pytest.skip("dicts have no versions here")
    holder = Holder()
    version = _native.dict_version(vars(holder))
    assert version != 0
    assert (holder.a, holder.b, list(vars(holder))) == (0, 1, ["a", "b"])
    assert _native.dict_version(vars(holder)) == version


def test_giving_a_version_changes_nothing_that_can_be_seen() -> None:
    holder = Holder()
    table = vars(holder)
    walk = iter(table.items())
    assert next(walk) == ("a", 0)
    _native.dict_version(table)
    assert list(walk) == [("b", 1)]
    assert vars(holder) is table
    holder.a = 5
    assert table == {"a": 5, "b": 1}


def test_dicts_that_take_the_place_of_freed_ones_have_versions_of_their_own() -> None:
    seen: set[int] = set()
    for number in range(3000):
        version = _native.dict_version({"a": number})
        assert version not in seen
        seen.add(version)
        seen.discard(0)


def _says_one(holder: Any) -> Any:
    source = ItemSource(InstanceDictSource(LocalSource("x")), "a")
    evaluator = fx_guards.build([fx_guards.EqualsConstant(source, 1)], varnames=("x",))

    def function(x: Any) -> None: ...

    return lambda: evaluator.check_call(function, holder)


def test_facts_about_inline_attributes_are_seen_to_change() -> None:
    holder = Holder()
    holder.a = 1
    holds = _says_one(holder)
    assert [holds() for _ in range(5)] == [True] * 5
    for value in (2, 1, 3, 1):
        holder.a = value
        assert holds() is (value == 1)
        assert holds() is (value == 1)


@pytest.mark.skipif(sys.version_info < (3, 13), reason="versions are kept in the dicts")
def test_a_dict_that_others_watch_is_looked_through_each_time() -> None:
    capi = pytest.importorskip("_testcapi", reason="CPython is built without its test modules")
    holder = Holder()
    holder.a = 1
    holds = _says_one(holder)
    assert [holds() for _ in range(5)] == [True] * 5
    watcher = capi.add_dict_watcher(0)
    try:
        capi.watch_dict(watcher, vars(holder))
        holder.a = 2
        assert _native.dict_version(vars(holder)) == 0
        assert not holds()
        holder.a = 1
        assert [holds(), holds()] == [True, True]
        holder.a = 2
        assert not holds()
    finally:
        capi.clear_dict_watcher(watcher)


@pytest.mark.skipif(sys.version_info < (3, 13), reason="versions are kept in the dicts")
def test_without_a_watcher_left_every_check_is_a_full_one() -> None:
    pytest.importorskip("_testcapi", reason="CPython is built without its test modules")
    program = """
import _testcapi
import torch  # it wants one for itself
try:
    while True:
        _testcapi.add_dict_watcher(0)
except RuntimeError:
    pass
import fx_guards
from fx_interface.source import AttrSource, LocalSource
class Thing: pass
thing = Thing(); thing.a = 1
evaluator = fx_guards.build([fx_guards.EqualsConstant(AttrSource(LocalSource("x"), "a"), 1)], varnames=("x",))
def function(x): pass
print(fx_guards.SKIPS_BY_DICT_VERSION, evaluator.check_call(function, thing), evaluator.plan)
thing.a = 2
print(evaluator.check_call(function, thing))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "None", "False"]
