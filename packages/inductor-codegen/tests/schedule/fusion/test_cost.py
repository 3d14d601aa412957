"""What memory holds on a GPU is the narrower of two dtypes that a value is converted between."""

from __future__ import annotations

import torch
from torch.fx import Node

from fx_interface.dialects import prims as p
from inductor_codegen.ir.program import Buffer, Program
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, GpuGraph, Stepper, on_device

CPU = torch.device("cpu")
LARGE = (512, 256)


def stored(graph: GpuGraph, *outputs: Node) -> list[torch.dtype]:
    """The dtypes of large tensors that are inside of the program."""
    program = plan(graph.build(*outputs))
    results = Stepper(on_device(program, CPU))(*graph.examples)
    for node, result in zip(outputs, results, strict=True):
        torch.testing.assert_close(result, graph.values[node], rtol=2e-2, atol=2e-2)
    return inside(program)


def inside(program: Program) -> list[torch.dtype]:
    outside = {given.name for given in program.inputs if isinstance(given, Buffer)}
    outside |= {getattr(output, "name", None) for output in program.outputs}
    return [b.dtype for name, b in program.buffers().items() if name not in outside and len(b.sizes) == 2]


def half(graph: ExampleGraph, node: Node) -> Node:
    return graph.call(p.convert_dtype, node, torch.bfloat16)


def wide(graph: ExampleGraph, node: Node) -> Node:
    return graph.call(p.convert_dtype, node, torch.float32)


def read_by_two_kernels(graph: GpuGraph, value: Node) -> tuple[Node, ...]:
    """Sums of rows and of columns."""
    return graph.call(p.sum, value, [1]), graph.call(p.sum, graph.call(p.exp, value), [0])


def test_a_rounded_value_is_kept_narrow() -> None:
    graph = GpuGraph()
    x, y = graph.input(torch.randn(*LARGE)), graph.input(torch.randn(*LARGE), "y")
    rounded = wide(graph, half(graph, graph.call(p.exp, graph.call(p.mul, x, y))))
    assert stored(graph, *read_by_two_kernels(graph, rounded)) == [torch.bfloat16]


def test_a_wide_result_is_written_where_it_is_computed() -> None:
    graph = GpuGraph()
    x, y = graph.input(torch.randn(*LARGE)), graph.input(torch.randn(*LARGE), "y")
    rounded = wide(graph, half(graph, graph.call(p.exp, graph.call(p.mul, x, y))))
    assert stored(graph, rounded, *read_by_two_kernels(graph, rounded)) == []


def test_a_rounded_sum_is_kept_narrow() -> None:
    graph = GpuGraph()
    x = graph.input(torch.randn(*LARGE, 9))
    total = half(graph, graph.call(p.div, graph.call(p.sum, x, [2]), 9.0))  # too many to be written out
    assert stored(graph, *read_by_two_kernels(graph, wide(graph, total))) == [torch.bfloat16]
