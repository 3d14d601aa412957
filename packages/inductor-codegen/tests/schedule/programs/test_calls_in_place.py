"""Calls that overwrite a part of an input whose new content they make write right into it, where nobody can tell."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.fx import GraphModule

from fx_interface.dialects import prims as p
from fx_interface.signature import SIGNATURE_KEY, InputDecl, InputKind, OutputDecl, OutputKind, Signature
from inductor_codegen import CodegenOptions, compile_graph
from inductor_codegen.ir.program import BufferRef, CallExtern
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph

aten = torch.ops.aten
ROWS = torch.tensor([1, 5, 7])


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


def put(before: bool = False, after: str = "", accumulate: bool = False) -> GraphModule:
    """Rows of a table are overwritten; the old content is read ``before``, and ``after`` something else is done."""
    graph = ExampleGraph()
    table, rows = graph.input(torch.zeros(10, 4), "table"), graph.input(ROWS, "rows")
    values = graph.input(torch.ones(3, 4), "values")
    old = [graph.call(p.exp, table)] if before else []
    new = graph.call(aten.index_put.default, table, [rows], values, accumulate)
    made = []
    if after == "product":
        made = [graph.call(aten.mm.default, new, graph.call(aten.t.default, values))]
    elif after == "lookup":
        made = [graph.call(aten.index.Tensor, values, [graph.input(torch.tensor([0, 2]), "picks")])]
    return declared(graph.build(new, *old, *made), 0, *[None] * (len(old) + len(made)))


def operators(module: GraphModule) -> list[object]:
    return [step.op for step in plan(module).steps if isinstance(step, CallExtern)]


def test_rows_are_written_into_the_input(tmp_path: Path) -> None:
    module = put()
    assert plan(module).outputs == (BufferRef("table"),)
    assert operators(module) == [aten.index_put_.default]
    table, values = torch.zeros(10, 4), torch.randn(3, 4)
    version = table._version
    (result,) = compile_graph(module, CodegenOptions(tmp_path))(table, ROWS, values)
    assert result is table
    assert table._version == version  # who runs the graph counts
    assert torch.equal(table[ROWS], values)
    assert table.count_nonzero() == values.count_nonzero()


def test_an_index_out_of_range(tmp_path: Path) -> None:
    run = compile_graph(put(), CodegenOptions(tmp_path))
    with pytest.raises(IndexError, match="out of bounds"):
        run(torch.zeros(10, 4), ROWS * 2, torch.ones(3, 4))


def test_what_cannot_be_rejected_may_follow(tmp_path: Path) -> None:
    module = put(after="product")
    assert aten.index_put_.default in operators(module)
    table, values = torch.zeros(10, 4), torch.randn(3, 4)
    _, product = compile_graph(module, CodegenOptions(tmp_path))(table, ROWS, values)
    torch.testing.assert_close(product, table @ values.t())


@pytest.mark.parametrize("module", [put(before=True), put(after="lookup"), put(accumulate=True)])
def test_elsewhere_it_is_a_new_tensor(module: GraphModule) -> None:
    """The old content is read, a later call may raise, or what is written twice is not what is written once."""
    assert aten.index_put_.default not in operators(module)


def part(dim: int, start: int, end: int, step: int = 1) -> GraphModule:
    graph = ExampleGraph()
    table = torch.zeros(10, 4)
    given, size = graph.input(table, "table"), list(table.shape)
    size[dim] = len(range(table.shape[dim])[start:end:step])
    values = graph.input(torch.ones(size), "values")
    return declared(
        graph.build(graph.call(aten.slice_scatter.default, given, values, dim, start, end, step)), 0
    )


@pytest.mark.parametrize("places", [(0, 2, 5, 1), (0, 1, 8, 3), (1, 1, 3, 1)])
def test_a_slice_is_copied_into_the_input(tmp_path: Path, places: tuple[int, int, int, int]) -> None:
    module = part(*places)
    assert operators(module) == [aten.copy_.default]
    dim, *bounds = places
    table, expected = torch.randn(10, 4), torch.zeros(10, 4)
    expected.copy_(table)
    view = expected[slice(*bounds)] if dim == 0 else expected[:, slice(*bounds)]
    values = torch.randn(view.shape)
    view.copy_(values)
    (result,) = compile_graph(module, CodegenOptions(tmp_path))(table, values)
    assert result is table
    assert torch.equal(table, expected)


def test_places_that_may_lie_outside_are_left() -> None:
    assert operators(part(0, -3, 10)) == [aten.slice_scatter.default]
