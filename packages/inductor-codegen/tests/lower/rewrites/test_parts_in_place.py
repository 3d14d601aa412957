"""Parts of joined tensors on a GPU: computed where they stand if nothing but calls and the caller read the whole."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import Node

from fx_interface.dialects import prims as p
from inductor_codegen.ir.kernel import Access, Kernel
from inductor_codegen.ir.program import Allocate, CallExtern, Program, RunKernel, View
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, GpuGraph, Stepper, on_device

aten: Any = torch.ops.aten
CPU = torch.device("cpu")


def check(graph: ExampleGraph, *outputs: Any) -> Program:
    """The program, after it ran on the CPU twice: the results of one run are not those of the other."""
    program = plan(graph.build(*outputs))
    run = Stepper(on_device(program, CPU))
    first, second = run(*graph.examples), run(*graph.examples)
    for node, one, other in zip(outputs, first, second, strict=True):
        torch.testing.assert_close(one, graph.values[node], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(other, one)
        assert one.stride() == graph.values[node].stride()
    return program


def launched(program: Program) -> list[Kernel]:
    known = {kernel.name: kernel for kernel in program.kernels}
    return [known[step.kernel] for step in program.steps if isinstance(step, RunKernel)]


def writes(kernel: Kernel) -> int:
    return sum(buffer.access is not Access.READ for buffer in kernel.buffers)


def matrix(graph: ExampleGraph, *sizes: int) -> Node:
    return graph.input(torch.randn(sizes or (6, 8)), f"x{len(graph.examples)}")


def gated(graph: ExampleGraph, *sizes: int) -> tuple[Node, Node]:
    """Two functions of the same three tensors."""
    grad, gate, up = (matrix(graph, *sizes) for _ in range(3))
    return graph.call(p.mul, grad, graph.call(p.tanh, gate)), graph.call(
        p.mul, graph.call(p.mul, grad, up), graph.call(p.tanh, gate)
    )


@pytest.mark.parametrize("dim", [0, 1])
def test_one_kernel_writes_both_halves(dim: int) -> None:
    graph = GpuGraph()
    program = check(graph, graph.call(p.cat, list(gated(graph)), dim))
    (kernel,) = launched(program)
    assert writes(kernel) == 2
    assert [type(step) for step in program.steps[:3]] == [Allocate, View, View]
    assert [step.offset for step in program.steps if isinstance(step, View)] == [0, 48 if dim == 0 else 8]


def test_what_a_product_reads() -> None:
    graph = GpuGraph()
    joined = graph.call(p.cat, list(gated(graph)), 1)
    product = graph.call(aten.mm.default, joined, matrix(graph, 16, 5))
    program = check(graph, graph.call(p.exp, product))
    kinds = [type(step) for step in program.steps if isinstance(step, RunKernel | CallExtern)]
    assert kinds == [RunKernel, CallExtern, RunKernel]


def test_parts_of_several_sizes_and_more_dimensions() -> None:
    graph = GpuGraph()
    parts = [graph.call(p.exp, matrix(graph, 3, size, 4)) for size in (2, 5, 1)]
    program = check(graph, graph.call(p.cat, parts, 1))
    assert [step.offset for step in program.steps if isinstance(step, View)] == [0, 8, 28]
    assert [writes(kernel) for kernel in launched(program)] == [1, 1, 1]


def test_sums_of_a_joined_tensor_are_taken_beside_its_parts() -> None:
    """The gradients of a layer with two halves and of its bias, in one pass."""
    graph = GpuGraph()
    joined = graph.call(p.cat, list(gated(graph)), 1)
    wide = graph.call(p.convert_dtype, joined, torch.float64)
    first, *others = launched(check(graph, joined, graph.call(p.sum, wide, [0])))
    assert writes(first) == 4  # halves, and the sums of each
    assert len(others) == 1  # joins the sums


def test_a_sum_along_the_joined_dimension() -> None:
    graph = GpuGraph()
    joined = graph.call(p.cat, list(gated(graph)), 1)
    check(graph, joined, graph.call(p.sum, joined, [1]))


def test_sums_over_dimensions_before_and_behind() -> None:
    graph = GpuGraph()
    joined = graph.call(p.cat, [graph.call(p.exp, matrix(graph, 3, size, 4)) for size in (2, 5)], 1)
    results = [graph.call(p.sum, joined, dims) for dims in ([0], [2], [0, 2])]
    check(graph, *results)


def without_place(graph: GpuGraph) -> list[Node]:
    """Results with joined tensors whose parts are in memory, seen through views, or read by kernels too."""
    x, y = matrix(graph), matrix(graph)
    grown, turned = (
        graph.call(p.exp, x),
        graph.call(p.permute, graph.call(p.exp, matrix(graph, 8, 6)), [1, 0]),
    )
    read = graph.call(p.cat, [grown, graph.call(p.sin, y)], 1)
    return [
        graph.call(p.cat, [x, grown], 1),
        graph.call(p.cat, [turned, graph.call(p.cos, y)], 1),
        graph.call(p.cat, [graph.call(p.tanh, y), graph.call(p.tanh, x)], 0),
        graph.call(p.mul, read, 2.0),
        read,
    ]


@pytest.mark.parametrize("chosen", range(5))
def test_where_a_part_has_no_place(chosen: int) -> None:
    graph = GpuGraph()
    results = without_place(graph)
    program = check(graph, *(results[3:] if chosen > 2 else [results[chosen]]))
    assert any(isinstance(step, View) for step in program.steps) == (chosen == 2)


def test_a_part_that_is_a_result_or_stands_twice() -> None:
    for twice in (False, True):
        graph = GpuGraph()
        first, second = gated(graph)
        joined = graph.call(p.cat, [first, first if twice else second], 1)
        program = check(graph, joined, *([] if twice else [first]))
        assert not any(isinstance(step, View) for step in program.steps)


def test_a_part_that_another_kernel_reads() -> None:
    """It has gaps in memory, which its readers know."""
    graph = GpuGraph()
    first, second = gated(graph)
    joined = graph.call(p.cat, [first, second], 1)
    columns = graph.call(p.sum, graph.call(p.exp, graph.call(p.permute, first, [1, 0])), [1])
    product = graph.call(aten.mm.default, joined, matrix(graph, 16, 5))
    check(graph, product, columns, graph.call(p.mul, first, matrix(graph)))


def test_symbolic_sizes() -> None:
    graph = GpuGraph()
    rows, columns = graph.symbol(), graph.symbol()
    sizes = [node for node in graph.examples if isinstance(node, int)]
    program = check(graph, graph.call(p.cat, list(gated(graph, *sizes)), 1))
    assert [step.offset for step in program.steps if isinstance(step, View)] == [0, columns]
    assert rows != columns


def test_a_loop_on_a_cpu_chooses() -> None:
    graph = ExampleGraph()
    (kernel,) = launched(check(graph, graph.call(p.cat, list(gated(graph)), 1)))
    assert writes(kernel) == 1
