"""Pointwise kernels that read the same memory one after the other become one, where nothing stands between them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.fx import Node

from fx_interface.dialects import prims as p
from fx_interface.graph import spec_of_node
from inductor_codegen.ir.program import CallExtern, Program, RunKernel
from inductor_codegen.pipeline import plan
from inductor_codegen.schedule.fusion.neighbours import MOST_BUFFERS
from inductor_codegen.testing import ExampleGraph, GpuGraph, Stepper, on_device

aten = torch.ops.aten


def check(graph: ExampleGraph, *outputs: Any) -> Program:
    """The program, after its kernels gave what the graph gives."""
    module = graph.build(*outputs)
    program = plan(module)
    run = Stepper(on_device(program, torch.device("cpu")))
    for got, want in zip(run(*graph.examples), module(*graph.examples), strict=True):
        torch.testing.assert_close(got, want)
    return program


def matrix(graph: ExampleGraph, *sizes: int) -> Node:
    return graph.input(torch.randn(sizes or (40, 50)))


def test_results_of_one_input_are_made_in_one_loop() -> None:
    graph = ExampleGraph()
    grad, x, y = (matrix(graph) for _ in range(3))
    assert len(check(graph, graph.call(p.mul, grad, x), graph.call(p.mul, grad, y)).kernels) == 1


def test_what_one_stores_and_the_other_reads_stays_in_registers() -> None:
    graph = ExampleGraph()
    x, y, z = (matrix(graph) for _ in range(3))
    grown = graph.call(p.exp, graph.call(p.add, x, y))
    (kernel,) = check(graph, grown, graph.call(p.mul, graph.call(p.mul, grown, z), grown)).kernels
    assert sum(buffer.name.startswith("in") for buffer in kernel.buffers) == 3


def test_nothing_in_common_is_two_kernels() -> None:
    graph = ExampleGraph()
    x, y = matrix(graph), matrix(graph)
    assert len(check(graph, graph.call(p.exp, x), graph.call(p.sin, y)).kernels) == 2


def test_a_library_call_stands_between() -> None:
    """Merged, the first result or its inputs would be kept while the product is made."""
    graph = ExampleGraph()
    x = matrix(graph, 30, 30)
    product = graph.call(aten.mm.default, graph.call(p.exp, x), x)
    program = check(graph, graph.call(p.mul, product, x))
    kinds = [type(step) for step in program.steps if isinstance(step, RunKernel | CallExtern)]
    assert kinds == [RunKernel, CallExtern, RunKernel]


def test_a_sum_that_waits_for_the_first_and_that_the_second_waits_for() -> None:
    graph = ExampleGraph()
    x = matrix(graph)
    grown = graph.call(p.exp, x)
    total = graph.call(p.sum, graph.call(p.permute, grown, [1, 0]), [0, 1])
    scaled = graph.call(p.mul, x, graph.call(p.broadcast_in_dim, total, [40, 50], []))
    check(graph, grown, scaled)


@pytest.mark.parametrize("sizes", [(50, 40), (2000,)])
def test_other_points(sizes: tuple[int, ...]) -> None:
    """The same memory counted in other rows is read in the same order; the other way round it is not."""
    graph = ExampleGraph()
    x = matrix(graph)
    other = graph.call(p.exp, graph.call(p.reshape, x, list(sizes)))
    program = check(graph, graph.call(p.sin, x), other)
    assert len(program.kernels) == (1 if len(sizes) == 1 else 2)


def test_a_result_that_is_read_across() -> None:
    graph = ExampleGraph()
    x = matrix(graph, 30, 30)
    grown = graph.call(p.exp, x)
    turned = graph.call(p.add, x, graph.call(p.sin, graph.call(p.permute, grown, [1, 0])))
    assert len(check(graph, grown, turned).kernels) == 2


def test_few_streams_of_memory() -> None:
    graph = ExampleGraph()
    x = matrix(graph)
    results = [graph.call(p.mul, x, matrix(graph)) for _ in range(MOST_BUFFERS)]
    program = check(graph, *results)
    assert 1 < len(program.kernels) < len(results)
    assert max(len(kernel.buffers) for kernel in program.kernels) <= MOST_BUFFERS


def order(program: Program) -> list[type]:
    return [type(step) for step in program.steps if isinstance(step, RunKernel | CallExtern)]


def test_a_gpu_computes_before_a_call_what_reads_the_same() -> None:
    """Both gradients of a gated activation, whichever product comes first."""
    graph = GpuGraph()
    grad, gate, up, w = (matrix(graph, 30, 30) for _ in range(4))
    of_up = graph.call(aten.mm.default, graph.call(p.mul, grad, graph.call(p.tanh, gate)), w)
    of_gate = graph.call(aten.mm.default, graph.call(p.mul, graph.call(p.mul, grad, up), gate), w)
    assert order(check(graph, of_up, of_gate)) == [RunKernel, CallExtern, CallExtern]


def test_a_gpu_waits_for_the_call_that_is_needed() -> None:
    graph = GpuGraph()
    x = matrix(graph, 30, 30)
    product = graph.call(aten.mm.default, graph.call(p.exp, x), x)
    assert order(check(graph, graph.call(p.mul, product, x))) == [RunKernel, CallExtern, RunKernel]


@pytest.mark.parametrize("turned", [False, True])
def test_a_gpu_goes_along_what_it_stores(turned: bool) -> None:
    """Two results of one tensor are two kernels where one of them lies transposed."""
    graph = GpuGraph()
    x = graph.input(torch.randn(64, 64))
    y = graph.input(torch.randn(64, 64).t() if turned else torch.randn(64, 64), "y")
    one = graph.call(p.mul, x, 2.0)
    other = graph.call(p.mul, y, x)
    other.meta["spec"] = replace(spec_of_node(other), strides=(1, 64) if turned else (64, 1))
    graph.values[other] = graph.values[other].t().contiguous().t() if turned else graph.values[other]
    assert len(plan(graph.build(one, other)).kernels) == 1 + turned
