"""Programs with collectives: in the graph's order, and with memory that stays while another process reads it."""

from __future__ import annotations

import pytest
import torch
from torch.fx import Node

from fx_interface.dialects import prims as p
from fx_interface.graph_tools.builder import GraphBuilder
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from inductor_codegen.ir.program import CallExtern, Program, Reuse
from inductor_codegen.pipeline import plan

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="torch without torch.distributed"
)
aten = torch.ops.aten


def spec(*sizes: int) -> TensorSpec:
    return TensorSpec(sizes, contiguous_strides(sizes), torch.float32, torch.device("cpu"))


def calls(program: Program) -> list[str]:
    return [step.op._opname for step in program.steps if isinstance(step, CallExtern)]


def reused(program: Program) -> list[str]:
    return [step.of for step in program.steps if isinstance(step, Reuse)]


def total(graph: GraphBuilder, x: Node) -> Node:
    return graph.call(torch.ops._c10d_functional.all_reduce.default, x, "sum", "0", spec=spec(8, 8))


def wait(graph: GraphBuilder, x: Node, *sizes: int) -> Node:
    return graph.call(torch.ops._c10d_functional.wait_tensor.default, x, spec=spec(*sizes))


def test_collectives_run_in_the_graphs_order() -> None:
    """The first is given what a kernel computes together with a value that comes after the second."""
    graph = GraphBuilder("prims")
    x, y = graph.input(spec(8, 8), name="x"), graph.input(spec(8, 8), name="y")
    grown = graph.call(p.exp, x, spec=spec(8, 8))
    first = total(graph, grown)
    second = graph.call(torch.ops._c10d_functional.broadcast.default, y, 0, "0", spec=spec(8, 8))
    late = graph.call(p.sin, grown, spec=spec(8, 8))
    results = [wait(graph, first, 8, 8), wait(graph, second, 8, 8), late]
    assert calls(plan(graph.build(*results)))[:2] == ["all_reduce", "broadcast"]


@pytest.mark.parametrize("copies", [True, False])
def test_no_kernel_works_in_place_on_what_another_process_reads(copies: bool) -> None:
    graph = GraphBuilder("prims")
    x = graph.input(spec(8, 8), name="x")
    sent = graph.call(aten.mm.default, x, x, spec=spec(8, 8))
    if copies:
        made, sizes = total(graph, sent), (8, 8)
    else:
        gather = torch.ops._c10d_functional.all_gather_into_tensor.default
        made, sizes = graph.call(gather, sent, 2, "0", spec=spec(16, 8)), (16, 8)
    beside = graph.call(p.exp, sent, spec=spec(8, 8))
    product = graph.call(aten.mm.default, beside, x, spec=spec(8, 8))
    program = plan(graph.build(product, wait(graph, made, *sizes)))
    assert bool(reused(program)) is copies
