"""What shares a kernel on a GPU: one pass for reductions side by side, none for what is computed from their totals."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import Node

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.triton.split import cells_of
from inductor_codegen.ir.kernel import Access, Kernel, Vector
from inductor_codegen.ir.program import Program, RunKernel
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, GpuGraph, Stepper, on_device

CPU = torch.device("cpu")
FEW_ROWS = (2, 16, 256, 256)
LAST = torch.channels_last


def check(graph: ExampleGraph, *outputs: Any) -> list[Kernel]:
    """The kernels of the program in the order of their launches, after it was run on the CPU."""
    program: Program = plan(graph.build(*outputs))
    results = Stepper(on_device(program, CPU))(*graph.examples)
    for node, result in zip(outputs, results, strict=True):
        torch.testing.assert_close(result, graph.values[node], rtol=1e-4, atol=1e-4)
    known = {kernel.name: kernel for kernel in program.kernels}
    return [known[step.kernel] for step in program.steps if isinstance(step, RunKernel)]


def by_channel(graph: ExampleGraph, value: Node, sizes: tuple[int, ...]) -> Node:
    return graph.call(p.broadcast_in_dim, value, list(sizes), [1])


def reads(kernel: Kernel) -> int:
    return sum(buffer.access is Access.READ for buffer in kernel.buffers)


@pytest.mark.parametrize("form", [torch.contiguous_format, LAST])
def test_statistics_stand_apart_from_what_is_made_with_them(form: torch.memory_format) -> None:
    """``(x - mean) * mean(|x - mean|)``: two passes that are split, and the points, each a kernel."""
    graph = GpuGraph()
    x = graph.input(torch.randn(FEW_ROWS).to(memory_format=form))
    mean = graph.call(p.div, graph.call(p.sum, x, [0, 2, 3]), 131072.0)
    apart = graph.call(p.sub, x, by_channel(graph, mean, FEW_ROWS))
    spread = graph.call(p.div, graph.call(p.sum, graph.call(p.abs, apart), [0, 2, 3]), 131072.0)
    root = graph.call(p.rsqrt, spread)
    result = graph.call(p.mul, apart, by_channel(graph, root, FEW_ROWS))
    first, second, points = check(graph, result, mean, root)
    assert cells_of(first)
    assert cells_of(second)
    assert not any(step.row for step in points.passes)
    expected = Vector.OUTER if form is LAST else Vector.INNER
    assert first.vector is second.vector is expected


def test_points_are_taken_in_the_order_of_memory() -> None:
    graph = GpuGraph()
    x = graph.input(torch.randn(FEW_ROWS).to(memory_format=LAST))
    total = graph.call(p.sum, x, [0, 2, 3])
    *_, points = check(graph, graph.call(p.mul, x, by_channel(graph, total, FEW_ROWS)), total)
    (*_, last) = (*points.outer, *points.inner)
    assert last.extent == 16


def test_rows_that_a_program_holds_stay_one_kernel() -> None:
    graph = GpuGraph()
    x = graph.input(torch.randn(2048, 1000))
    most = graph.call(p.broadcast_in_dim, graph.call(p.amax, x, [1]), [2048, 1000], [0])
    power = graph.call(p.exp, graph.call(p.sub, x, most))
    total = graph.call(p.broadcast_in_dim, graph.call(p.sum, power, [1]), [2048, 1000], [0])
    (kernel,) = check(graph, graph.call(p.div, power, total))
    assert len(kernel.passes) == 3


def test_sums_over_the_same_points_are_one_pass() -> None:
    """A batch norm's gradient: two sums over what two tensors give, each with an epilogue."""
    graph = GpuGraph()
    x, slope = graph.input(torch.randn(FEW_ROWS)), graph.input(torch.randn(FEW_ROWS), "g")
    one = graph.call(p.sum, slope, [0, 2, 3])
    two = graph.call(p.sum, graph.call(p.mul, slope, x), [0, 2, 3])
    (kernel,) = check(graph, graph.call(p.neg, one), graph.call(p.exp, graph.call(p.div, two, 1e6)))
    assert reads(kernel) == 2
    assert len(cells_of(kernel)) == 2


def test_sums_of_which_one_needs_the_other_are_not() -> None:
    graph = GpuGraph()
    x = graph.input(torch.randn(FEW_ROWS))
    one = graph.call(p.sum, x, [0, 2, 3])
    scaled = graph.call(p.mul, graph.call(p.div, one, 1e3), 2.0)
    two = graph.call(p.sum, graph.call(p.mul, x, by_channel(graph, scaled, FEW_ROWS)), [0, 2, 3])
    assert len(check(graph, two, scaled)) == 2


def test_sums_into_other_rows_are_not() -> None:
    graph = GpuGraph()
    x = graph.input(torch.randn(64, 48, 700))
    assert len(check(graph, graph.call(p.sum, x, [0, 2]), graph.call(p.sum, x, [0, 1]))) == 2


def test_readers_of_one_stored_value_share_its_kernel() -> None:
    """Around them stands something that needs one of them and is needed by another: that one stays apart."""
    graph = GpuGraph()
    x = graph.input(torch.randn(300, 400))
    shared = graph.call(p.exp, graph.call(p.sin, x))
    readers = [graph.call(op, shared) for op in (p.neg, p.cos, p.tanh)]
    total = graph.call(torch.ops.aten.logcumsumexp.default, readers[0], 0)
    late = graph.call(p.mul, shared, total)
    kernels = check(graph, *readers[1:], late, shared)
    assert len(kernels) == 2


def test_what_is_cheap_is_computed_again_rather_than_stored() -> None:
    """On a GPU, where it would be stored in more bytes than it is computed from."""
    sizes = (64, 2048)

    def stored(graph: ExampleGraph) -> int:
        x = graph.input(torch.randn(sizes).bfloat16())
        wide = graph.call(p.exp, graph.call(p.convert_dtype, x, torch.float32))
        rows, columns = graph.call(p.sum, wide, [1]), graph.call(p.sum, wide, [0])
        return sum(len(kernel.buffers) for kernel in check(graph, rows, columns))

    assert stored(GpuGraph()) == 4
    assert stored(ExampleGraph()) == 5
