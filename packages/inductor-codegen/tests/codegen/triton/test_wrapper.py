"""Whole programs in the interpreter: random graphs, library calls, in-place results, symbolic sizes; and their text."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.triton.kernel import kernel_source
from inductor_codegen.codegen.triton.wrapper import program_source
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, GpuGraph, on_device

Interpret = Callable[..., Callable[..., Any]]
GOLDEN = Path(__file__).parent / "golden"


def random_graphs() -> ModuleType:
    """The module of the random graphs' test."""
    path = Path(__file__).parents[2] / "test_pipeline.py"
    spec = importlib.util.spec_from_file_location("random_graphs", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("seed", [0, 3, 38, 128, *range(200, 206)])
def test_random_graphs(seed: int, symbolic: bool, interpret: Interpret) -> None:
    made = random_graphs().RandomGraph(seed, symbolic)
    for _ in range(8):
        made.grow()
    outputs = made.nodes[-3:]
    run = interpret(plan(made.graph.build(*outputs)))
    for result, node in zip(run(*made.graph.examples), outputs, strict=True):
        expected = made.graph.values[node]
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4, equal_nan=True)


def softmax(graph: ExampleGraph, x: Any, columns: Any) -> Any:
    rows = graph.call(p.amax, x, [1])
    sizes = [8, columns]
    shifted = graph.call(p.exp, graph.call(p.sub, x, graph.call(p.broadcast_in_dim, rows, sizes, [0])))
    total = graph.call(p.sum, shifted, [1])
    return graph.call(p.div, shifted, graph.call(p.broadcast_in_dim, total, sizes, [0]))


@pytest.mark.parametrize("columns", [5, 300, 9000])
def test_softmax_of_rows_that_fit_and_that_do_not(columns: int, interpret: Interpret) -> None:
    graph = ExampleGraph()
    example = torch.randn(8, columns)
    x = graph.call(p.tanh, graph.input(example))
    run = interpret(plan(graph.build(softmax(graph, x, columns))))
    torch.testing.assert_close(run(example)[0], example.tanh().softmax(1))


def test_softmax_of_a_symbolic_size(interpret: Interpret) -> None:
    graph = ExampleGraph()
    size = graph.symbol()
    x = graph.call(p.tanh, graph.input(torch.randn(8, 11)))
    run = interpret(plan(graph.build(softmax(graph, x, size))))
    for columns in (2, 11, 130, 9000):
        example = torch.randn(8, columns)
        torch.testing.assert_close(run(columns, example)[0], example.tanh().softmax(1))


def test_tiles(interpret: Interpret) -> None:
    graph = ExampleGraph()
    x, y, z = torch.randn(3, 70, 90), torch.randn(3, 90, 70).transpose(1, 2), torch.randn(70, 1)
    nodes = [graph.input(tensor, name) for tensor, name in ((x, "x"), (y, "y"), (z.expand(3, 70, 90), "z"))]
    total = graph.call(p.add, graph.call(p.mul, nodes[0], nodes[1]), nodes[2])
    program = plan(graph.build(total, graph.call(p.exp, nodes[1])))
    assert any("tl.program_id(1)" in kernel_source(kernel) for kernel in program.kernels)
    results = interpret(program)(x, y, z.expand(3, 70, 90))
    torch.testing.assert_close(results[0], x * y + z)
    torch.testing.assert_close(results[1], y.exp())


def test_library_calls_and_several_results(interpret: Interpret) -> None:
    from operator import getitem

    graph = ExampleGraph()
    x, w = torch.randn(4, 8), torch.randn(8, 8)
    product = graph.call(torch.ops.aten.mm.default, graph.input(x), graph.input(w, "w"))
    best = graph.call(torch.ops.aten.topk.default, graph.call(p.neg, product), 2)
    run = interpret(plan(graph.build(*(graph.call(getitem, best, i) for i in (0, 1)), None)))
    values, indices, nothing = run(x, w)
    expected = (-(x @ w)).topk(2)
    assert nothing is None
    torch.testing.assert_close(values, expected.values)
    assert torch.equal(indices, expected.indices)


def test_an_index_out_of_range_reads_nothing_outside(interpret: Interpret) -> None:
    graph = ExampleGraph()
    table, index = torch.randn(5, 3), torch.tensor([0, -1, 4])
    taken = graph.call(p.index, graph.input(table), [graph.input(index, "i")])
    run = interpret(plan(graph.build(taken)))
    assert torch.equal(run(table, index)[0], table[index])
    assert torch.equal(run(table, torch.tensor([0, 500_000_000_000, 1]))[0], table[[0, 0, 1]])


def test_negative_zero_survives(interpret: Interpret) -> None:
    graph = ExampleGraph()
    example = torch.tensor([0.0, -0.0])
    run = interpret(plan(graph.build(graph.call(p.neg, graph.input(example)))))
    assert run(example)[0].signbit().tolist() == [True, False]


def test_the_text_is_what_it_was() -> None:
    """Golden: update with ``FX_UPDATE_GOLDEN=1``."""
    graph = ExampleGraph()
    size = graph.symbol()
    x = graph.input(torch.randn(8, 11))
    w = graph.input(torch.randn(11, 11), "w")
    normal = softmax(graph, graph.call(p.tanh, x), size)
    text = program_source(plan(graph.build(graph.call(torch.ops.aten.mm.default, normal, w))))
    body = text[text.index("@triton.jit\ndef kernel") :]
    file = GOLDEN / "softmax.py.txt"
    if os.environ.get("FX_UPDATE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(body)
    assert body == file.read_text()


@pytest.mark.parametrize("columns", [5, 9000])
@pytest.mark.parametrize("reduced", [False, True])
def test_results_in_the_memory_of_operands_of_others(
    columns: int, reduced: bool, interpret: Interpret
) -> None:
    """The first result may take over the memory of an operand that only the second one needs."""
    graph = ExampleGraph()
    x = graph.input(torch.randn(2, columns))
    summed = graph.call(torch.ops.aten.cumsum.default, x, 0)
    grown = graph.call(p.exp, x)
    left = graph.call(p.sub, grown, summed)
    results = [grown, left, *([graph.call(p.sum, left, [1])] if reduced else [])]
    program = plan(graph.build(*results))
    given = torch.randn(2, columns)
    found = interpret(program)(given.clone())
    expected = [given.exp(), given.exp() - given.cumsum(0)]
    torch.testing.assert_close(list(found[:2]), expected)
    if reduced:
        torch.testing.assert_close(found[2], expected[1].sum(1), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("points", [40, 3000])
def test_what_is_the_same_in_all_rows_is_loaded_once(points: int, interpret: Interpret) -> None:
    """Numbers of a point beside sums of columns, and of a whole kernel; in branches they are loaded with the branch."""
    graph = GpuGraph()
    x, scale, shift = torch.randn(points, 48), torch.randn(points), torch.randn(points).abs()
    nodes = [graph.input(tensor, name) for tensor, name in ((x, "x"), (scale, "scale"), (shift, "shift"))]
    spread = [graph.call(p.broadcast_in_dim, node, [points, 48], [0]) for node in nodes[1:]]
    power = graph.call(p.pow, graph.call(p.abs, nodes[0]), spread[1])
    moved = graph.call(p.sub, graph.call(p.mul, power, graph.call(p.exp, spread[0])), 0.5)
    padded = graph.call(p.pad, nodes[1], [1], [0], 7.0)
    first = graph.call(p.slice_, padded, [0], [points], [1])
    shifted = graph.call(p.add, moved, graph.call(p.broadcast_in_dim, first, [points, 48], [0]))
    outputs = (graph.call(p.sum, shifted, [0]), graph.call(p.amax, moved, [0]), moved)
    program = on_device(plan(graph.build(*outputs)), torch.device("cpu"))
    assert any("_load_line(" in kernel_source(kernel) for kernel in program.kernels)
    for result, node in zip(interpret(program)(x, scale, shift), outputs, strict=True):
        torch.testing.assert_close(result, graph.values[node], rtol=1e-4, atol=1e-4)
