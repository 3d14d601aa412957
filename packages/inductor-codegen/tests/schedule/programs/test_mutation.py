"""New contents of inputs are written into them where nobody can tell, and returned as new tensors elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

from fx_interface.dialects import prims as p
from fx_interface.signature import SIGNATURE_KEY, InputDecl, InputKind, OutputDecl, OutputKind, Signature
from inductor_codegen import CodegenOptions, compile_graph
from inductor_codegen.ir.program import Allocate, BufferRef
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph

aten = torch.ops.aten


def declared(module: GraphModule, *mutated: int | None) -> GraphModule:
    """The graph with a signature: for each output the input whose new content it is."""
    names = [node.name for node in module.graph.nodes if node.op == "placeholder"]
    outputs = tuple(
        OutputDecl(OutputKind.USER) if index is None else OutputDecl(OutputKind.MUTATED_INPUT, index)
        for index in mutated
    )
    inputs = tuple(InputDecl(name, InputKind.USER, None) for name in names)
    module.meta[SIGNATURE_KEY] = Signature(inputs, outputs)
    return module


def average(*, momentum: float = 0.5) -> tuple[ExampleGraph, Any, Any]:
    graph = ExampleGraph()
    mean, x = graph.input(torch.zeros(8, 8), "mean"), graph.input(torch.ones(8, 8), "x")
    return graph, mean, graph.call(p.add, graph.call(p.mul, mean, momentum), x)


def test_the_new_content_is_written_into_the_input(tmp_path: Path) -> None:
    graph, _, new = average()
    module = declared(graph.build(new, graph.call(p.exp, new)), 0, None)
    program = plan(module)
    assert program.outputs[0] == BufferRef("mean")
    assert sum(isinstance(step, Allocate) for step in program.steps) == 1
    run = compile_graph(module, CodegenOptions(tmp_path))
    mean, x = torch.full((8, 8), 2.0), torch.ones(8, 8)
    result, other = run(mean, x)
    assert result is mean
    assert torch.equal(mean, torch.full((8, 8), 2.0))
    torch.testing.assert_close(other, mean.exp())
    run(mean, x * 3)
    assert torch.equal(mean, torch.full((8, 8), 4.0))


def test_several_inputs_of_one_kernel(tmp_path: Path) -> None:
    graph = ExampleGraph()
    one, two = graph.input(torch.ones(40), "one"), graph.input(torch.ones(40), "two")
    first = graph.call(p.mul, one, 2.0)
    second = graph.call(p.add, two, graph.call(p.mul, first, one))
    run = compile_graph(declared(graph.build(first, second), 0, 1), CodegenOptions(tmp_path))
    a, b = torch.arange(40.0), torch.ones(40)
    expected = a * 2, b + a * 2 * a
    found = run(a, b)
    assert (found[0] is a, found[1] is b) == (True, True)
    assert torch.equal(a, expected[0])
    assert torch.equal(b, expected[1])


def refused(module: GraphModule) -> None:
    outputs = plan(module).outputs
    assert all(isinstance(output, BufferRef) and output.name not in ("mean", "x") for output in outputs)


def test_not_where_the_old_content_is_read_elsewhere() -> None:
    graph, mean, new = average()
    flipped = graph.call(p.flip, mean, [0])
    refused(declared(graph.build(graph.call(p.add, new, flipped)), 0))


def test_not_where_the_old_content_is_read_later() -> None:
    graph, mean, new = average()
    rows = graph.call(p.sum, new, [1])
    again = graph.call(
        p.add, graph.call(p.flip, mean, [0]), graph.call(p.broadcast_in_dim, rows, [8, 8], [0])
    )
    refused(declared(graph.build(new, again), 0, None))


def test_not_where_a_later_step_may_fail() -> None:
    graph, _, new = average()
    product = graph.call(aten.mm.default, new, new)
    refused(declared(graph.build(new, product), 0, None))


def test_not_where_the_result_is_returned_besides() -> None:
    graph, _, new = average()
    refused(declared(graph.build(new, new), 0, None))


def test_not_where_the_layout_differs() -> None:
    graph = ExampleGraph()
    graph.input(torch.zeros(8, 4).t(), "mean")
    x = graph.input(torch.ones(4, 8), "x")
    refused(declared(graph.build(graph.call(p.mul, x, 2.0)), 0))


def test_an_index_out_of_range_changes_nothing(tmp_path: Path) -> None:
    graph = ExampleGraph()
    mean, index = graph.input(torch.zeros(8), "mean"), graph.input(torch.zeros(8, dtype=torch.int64), "index")
    new = graph.call(p.add, mean, graph.call(p.gather, mean, 0, index))
    run = compile_graph(declared(graph.build(new), 0), CodegenOptions(tmp_path))
    values = torch.arange(8.0)
    with pytest.raises(IndexError):
        run(values, torch.full((8,), 9))
    assert torch.equal(values, torch.arange(8.0))
