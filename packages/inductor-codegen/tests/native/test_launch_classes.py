"""The classes of launches that ranges of sizes reach, against those of each size by itself."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

from fx_interface import UnsupportedProgramError
from fx_interface.dialects import prims as p
from fx_interface.signature import SHAPE_ENV_KEY
from fx_interface.symbols import Relation, ShapeEnv, Symbol, evaluate
from inductor_codegen.codegen.triton.launch.kernels import SIZES_ALIGNED, KernelRecord
from inductor_codegen.native import launch_classes
from inductor_codegen.native.launch_classes import LaunchClass
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import GpuGraph


def prepared(graph_module: GraphModule) -> tuple[Any, ...]:
    program = plan(graph_module)
    kernels = program.kernels_on(torch.device("cuda", 0))
    records = [KernelRecord.of(kernel) for kernel in kernels]
    return program, kernels, records, graph_module.meta[SHAPE_ENV_KEY]


def by_size(
    arguments: tuple[Any, ...], spans: dict[Symbol, range], holds: Callable[..., bool]
) -> set[LaunchClass]:
    """The classes that single sizes reach, one after the other."""
    program, kernels, _, _ = arguments
    works = list(launch_classes.works_of(program, kernels))
    found = set()
    for values in itertools.product(*spans.values()):
        if not holds(*values):
            continue
        given = dict(zip(spans, values, strict=True))
        for work in works:
            rows, points = evaluate(work.rows, given), evaluate(work.points, given)
            is_aligned = all(evaluate(size, given) % 16 == 0 for size in work.sizes)
            bits = [max(count - 1, 0).bit_length() for count in (rows, points)]
            if rows:
                found.add(LaunchClass(work.number, *bits, SIZES_ALIGNED if is_aligned else 0))
    return found


def spans_of(env: ShapeEnv) -> dict[Symbol, range]:
    return {atom: range(info.range.low, info.range.high + 1) for atom, info in env.symbols.items()}


def row_sums(graph: GpuGraph, sizes: list[Any], over: list[int]) -> GraphModule:
    x = graph.input(torch.randn([graph.builder.env.hint(size) for size in sizes]))
    made: GraphModule = graph.build(graph.call(p.sum, graph.call(p.exp, x), over))
    return made


@pytest.mark.parametrize(
    ("low", "high", "others", "over"),
    [
        (2, 300, (96,), [1]),
        (5, 5, (7,), [0]),
        (9, 15, (3,), [1]),
        (17, 1 << 10, (5, 3), [0, 2]),
        (2, 70, (), [0]),
    ],
)
def test_one_size_is_exact(low: int, high: int, others: tuple[int, ...], over: list[int]) -> None:
    graph = GpuGraph()
    arguments = prepared(row_sums(graph, [graph.symbol(low, high), *others], over))
    found = launch_classes.launch_classes(*arguments)
    assert set(found) == by_size(arguments, spans_of(arguments[3]), lambda _: True)
    assert len(found) == len(set(found))


def test_several_sizes_miss_nothing() -> None:
    graph = GpuGraph()
    sizes = [graph.symbol(2, 40), graph.symbol(2, 70), 8]
    arguments = prepared(row_sums(graph, sizes, [1, 2]))
    found = set(launch_classes.launch_classes(*arguments))
    real = by_size(arguments, spans_of(arguments[3]), lambda *_: True)
    assert real <= found
    assert len(found) <= 2 * len(real)


def test_relations_bound_sizes() -> None:
    """What the program relies on is checked before it is called."""
    graph = GpuGraph()
    size = graph.symbol(2, 1000)
    module = row_sums(graph, [size, 96], [1])
    env = module.meta[SHAPE_ENV_KEY]
    env.guards.clear()
    env.require(Relation("<=", size, 64))
    env.require(Relation("<", 30, size))
    arguments = prepared(module)
    found = launch_classes.launch_classes(*arguments)
    assert set(found) == by_size(arguments, spans_of(env), lambda value: 30 < value <= 64)


def test_without_a_bound() -> None:
    """All that fits one launch."""
    graph = GpuGraph()
    found = launch_classes.launch_classes(*prepared(row_sums(graph, [graph.symbol(), 96], [1])))
    assert {one.points for one in found} == {7}
    assert {one.rows for one in found} == set(range(1, 35))
    assert {one.traits for one in found} == {0, SIZES_ALIGNED}


def test_too_many_forms_name_a_bound_that_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_classes, "MOST_LAUNCHES", 16)

    def classes(low: int, high: int | None) -> list[LaunchClass]:
        graph = GpuGraph()
        return launch_classes.launch_classes(*prepared(row_sums(graph, [graph.symbol(low, high), 4], [1])))

    with pytest.raises(UnsupportedProgramError, match=r"IND109.*s0 from 2 to any") as caught:
        classes(2, None)
    named = re.search(r"max=(\d+)", str(caught.value))
    assert named is not None
    most = int(named[1])
    assert classes(2, most)
    with pytest.raises(UnsupportedProgramError, match=rf"(?s)IND109.*max={most} "):
        classes(2, 2 * most)
    monkeypatch.setattr(launch_classes, "MOST_LAUNCHES", 1)
    with pytest.raises(UnsupportedProgramError, match=r"(?s)IND109.*leave some of them out"):
        classes(17, 90)
