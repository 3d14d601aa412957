"""Steps of compiled graphs are timed while somebody watches, and are ranges of torch's profiler."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from fx_interface import GraphBuilder
from fx_interface.dialects.prims import prim
from fx_interface.tensor_spec import spec_of
from inductor_codegen import CodegenOptions, compile_graph
from inductor_codegen.runtime import exports
from inductor_codegen.runtime.watching import watching

aten = torch.ops.aten


@pytest.fixture(scope="module")
def compiled() -> Callable[..., Any]:
    """exp, a product of matrices, and the rows that an index chooses of it."""
    x, rows = torch.randn(4, 4), torch.tensor([0, 3])
    builder = GraphBuilder("prims")
    given, index = builder.input(spec_of(x)), builder.input(spec_of(rows))
    computed = builder.call(prim("exp"), given, spec=spec_of(x))
    product = builder.call(aten.mm.default, computed, given, spec=spec_of(x))
    chosen = builder.call(aten.index_select.default, product, 0, index, spec=spec_of(x[rows]))
    graph = builder.build(chosen)
    return compile_graph(graph, CodegenOptions(cache_dir=Path(tempfile.mkdtemp())))


def _names(labels: Any) -> list[str]:
    kinds = ("kernel_", "aten::")
    return sorted(label.partition(" ")[0].partition("_")[0] for label in labels if label.startswith(kinds))


def test_each_step_is_counted(compiled: Callable[..., Any]) -> None:
    x, rows = torch.randn(4, 4), torch.tensor([0, 3])
    expected = (x.exp() @ x)[rows]
    with watching() as times:
        for _ in range(3):
            (result,) = compiled(x, rows)
            torch.testing.assert_close(result, expected)
        found = times()
    assert _names(found) == ["aten::index", "aten::mm", "kernel"]
    for time in found.values():
        assert time.calls == 3
        assert 0 < time.least * 3 <= time.total


def test_nothing_is_counted_before_and_after(compiled: Callable[..., Any]) -> None:
    arguments = torch.randn(4, 4), torch.tensor([1, 1])
    compiled(*arguments)
    with watching() as times:
        assert times() == {}
    compiled(*arguments)
    assert times() == {}


def test_watchers_count_what_ran_in_their_time(compiled: Callable[..., Any]) -> None:
    arguments = torch.randn(4, 4), torch.tensor([1, 1])
    with watching() as outer:
        compiled(*arguments)
        with watching() as inner:
            compiled(*arguments)
        compiled(*arguments)
    assert {time.calls for time in inner().values()} == {1}
    assert {time.calls for time in outer().values()} == {3}


def test_a_call_that_fails_leaves_no_step_open(compiled: Callable[..., Any]) -> None:
    x = torch.randn(4, 4)
    with watching() as times:
        with pytest.raises(IndexError):
            compiled(x, torch.tensor([0, 9]))
        compiled(x, torch.tensor([0, 1]))
    counts = {label.partition(" ")[0].partition("_")[0]: time.calls for label, time in times().items()}
    assert counts == {"kernel": 2, "aten::mm": 2, "aten::index": 2}


def test_threads_are_counted_together(compiled: Callable[..., Any]) -> None:
    x, rows = torch.randn(4, 4), torch.tensor([0, 3])

    def run() -> None:
        for _ in range(50):
            compiled(x, rows)

    with watching() as times:
        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [time.calls for time in times().values()] == [200, 200, 200]


def test_an_operator_that_calls_a_graph_is_timed_around_it(compiled: Callable[..., Any]) -> None:
    library = torch.library.Library("watching_tests", "DEF")
    library.define("through(Tensor x) -> Tensor")
    rows = torch.tensor([0, 3])
    library.impl("through", lambda x: torch.cat([*compiled(x, rows), x[:2]]), "CPU")
    x = torch.randn(4, 4)
    builder = GraphBuilder("prims")
    called = builder.call(
        torch.ops.watching_tests.through.default, builder.input(spec_of(x)), spec=spec_of(x)
    )
    outer = compile_graph(builder.build(called), CodegenOptions(cache_dir=Path(tempfile.mkdtemp())))
    with watching() as times:
        outer(x)
    found = times()
    around = found["watching_tests::through"]
    inside = [time.total for label, time in found.items() if label != "watching_tests::through"]
    assert len(inside) == 3
    assert around.calls == 1
    assert around.total > sum(inside)


@pytest.mark.skipif(
    not exports("aoti_record_function_start"), reason="this torch has no C function for ranges"
)
def test_a_profiler_shows_the_same_labels(compiled: Callable[..., Any]) -> None:
    x, rows = torch.randn(4, 4), torch.tensor([0, 3])
    with watching() as times:
        compiled(x, rows)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        compiled(x, rows)
    shown = {event.name for event in profiler.events()}
    assert set(times()) <= shown
