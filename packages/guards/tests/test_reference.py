"""The reference twin: scopes of calls, failed indices, fetching."""

from __future__ import annotations

import collections
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fx_guards
from fx_guards.reference import root_of, roots_of, scope_of_call
from fx_interface.source import AttrSource, GlobalSource, ItemSource, LocalSource, Source

X, Y = LocalSource("x"), LocalSource("y")


def test_scope_of_a_call_leaves_out_empty_cells_and_missing_slots() -> None:
    def outer() -> Any:
        def inner(x: Any, y: Any) -> Any:
            return later, known

        known = 1
        if x_never:
            later: int = 2
        return inner

    x_never = False
    function = outer()
    scope = scope_of_call(function, ("x", "y"), function.__code__.co_freevars, (1,))
    assert scope.locals == {"x": 1}
    assert scope.closure == {"known": 1}
    assert scope.globals is function.__globals__


def test_failed_is_the_guards_index() -> None:
    facts = [fx_guards.TypeIs(X, int), fx_guards.EqualsConstant(X, 1)]
    for evaluator in (fx_guards.ReferenceEvaluator(facts, ("x",)), fx_guards.build(facts, varnames=("x",))):
        assert not evaluator.check_call(root_of, 2)
        assert evaluator.failed == 1
        assert evaluator.check_call(root_of, 1)
        assert evaluator.failed == -1


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(0, 2), max_size=4), min_size=1, max_size=8), st.booleans())
def test_fetchers_agree(paths: list[list[int]], use_lists: bool) -> None:
    def nested(depth: int) -> Any:
        items = [nested(depth - 1) for _ in range(3)] if depth else [object() for _ in range(3)]
        return items if use_lists else dict(enumerate(items))

    sources: list[Source] = []
    for number, path in enumerate(paths):
        source: Source = X if number % 2 else GlobalSource("g")
        for step in path:
            source = ItemSource(source, step)
        if source not in sources:
            sources.append(source)
    native, reference = fx_guards.build_fetcher(sources), fx_guards.ReferenceFetcher(sources)
    roots = [nested(3) for _ in reference.roots]
    assert native.roots == reference.roots == roots_of(sources)
    for _ in range(3):
        results = native(*roots)
        assert len(results) == len(sources)
        assert all(a is b for a, b in zip(results, reference(*roots), strict=True))


def test_fetchers_raise_what_the_read_raises() -> None:
    sources = [ItemSource(AttrSource(X, "table"), "k"), Y]

    class Holder:
        table: Any = {}

    for fetcher in (fx_guards.build_fetcher(sources), fx_guards.ReferenceFetcher(sources)):
        with pytest.raises(KeyError, match="k"):
            fetcher(Holder(), 1)
        with pytest.raises(AttributeError, match="table"):
            fetcher(1, 1)
        with pytest.raises(TypeError, match="takes 2 positional"):
            fetcher(1)
        Holder.table = [1]
        with pytest.raises(TypeError):
            fetcher(Holder(), 1)
        Holder.table = {}


def test_what_a_dict_lacks_is_not_made() -> None:
    table: Any = collections.defaultdict(list)
    for fetcher in (
        fx_guards.build_fetcher([ItemSource(X, "k")]),
        fx_guards.ReferenceFetcher([ItemSource(X, "k")]),
    ):
        with pytest.raises(KeyError, match="k"):
            fetcher(table)
    assert not table


def test_a_repeated_source_is_refused() -> None:
    with pytest.raises(ValueError, match="distinct"):
        fx_guards.build_fetcher([X, Y, X])
