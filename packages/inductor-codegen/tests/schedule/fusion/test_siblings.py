"""Sums that load the same tensor share a pass on a CPU where it stays fast, and nothing else does."""

from __future__ import annotations

import pytest
import torch
from torch.fx import Node

from fx_interface.dialects import prims as p
from inductor_codegen.ir.kernel import Kernel
from inductor_codegen.lower.values import Lowered
from inductor_codegen.pipeline import plan
from inductor_codegen.schedule.fusion import siblings
from inductor_codegen.testing import ExampleGraph, Stepper

SIZES = [12, 40]


def kernels(graph: ExampleGraph, *outputs: Node) -> tuple[Kernel, ...]:
    """The kernels of a program whose interpreted results are those of the graph."""
    module = graph.build(*outputs)
    program = plan(module)
    results = Stepper(program, interpreted=True)(*graph.examples)
    for got, want in zip(results, module(*graph.examples), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    return program.kernels


def centred(graph: ExampleGraph, x: Node, dim: int) -> Node:
    mean = graph.call(p.div, graph.call(p.sum, graph.call(p.mul, x, 0.5), [dim]), 20.0)
    return graph.call(p.sub, x, graph.call(p.broadcast_in_dim, mean, SIZES, [1 - dim]))


def sum_of_squares(graph: ExampleGraph, x: Node, dim: int) -> Node:
    return graph.call(p.sum, graph.call(p.mul, x, x), [dim])


@pytest.mark.parametrize("dim", [0, 1])
def test_sums_of_one_tensor_are_one_pass(dim: int) -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(SIZES))
    (kernel,) = kernels(graph, graph.call(p.sum, x, [dim]), sum_of_squares(graph, x, dim))
    (step,) = kernel.passes
    assert len(step.points) == 2


@pytest.mark.parametrize("dim", [0, 1])
def test_a_sum_joins_the_first_of_two_passes(dim: int) -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(SIZES))
    spread = sum_of_squares(graph, centred(graph, x, dim), dim)
    (kernel,) = kernels(graph, graph.call(p.sum, x, [dim]), spread)
    assert [len(step.points) for step in kernel.passes if step.points] == [2, 1]


def test_sums_along_different_dimensions_stay_apart() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(SIZES))
    assert len(kernels(graph, graph.call(p.sum, x, [0]), sum_of_squares(graph, x, 1))) == 2


def test_sums_of_several_tensors_stay_apart() -> None:
    graph = ExampleGraph()
    x, y = graph.input(torch.randn(SIZES)), graph.input(torch.randn(SIZES), "y")
    product = graph.call(p.sum, graph.call(p.mul, x, y), [1])
    assert len(kernels(graph, graph.call(p.sum, x, [1]), product)) == 2


def test_a_search_for_the_largest_stays_apart() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(SIZES))
    assert len(kernels(graph, graph.call(p.sum, x, [1]), graph.call(p.amax, x, [1]))) == 2


def test_a_pass_that_computes_much_stays_apart() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(SIZES))
    value = x
    for _ in range(5):
        value = graph.call(p.sin, value)
    assert len(kernels(graph, graph.call(p.sum, x, [1]), graph.call(p.sum, value, [1]))) == 2


def test_two_kernels_of_two_passes_stay_apart() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(SIZES))
    apart = graph.call(p.abs, centred(graph, graph.call(p.abs, x), 1))
    results = sum_of_squares(graph, centred(graph, x, 1), 1), graph.call(p.sum, apart, [1])
    assert len(kernels(graph, *results)) == 2


def test_a_kernel_that_stores_points_stays_apart() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(SIZES))
    results = centred(graph, x, 1), sum_of_squares(graph, x, 1)
    assert len(kernels(graph, *results)) == 2


def test_what_a_sum_loads_is_found_once_for_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers that read one mask are asked in pairs; the work for each stays the same however many they are."""
    asked: list[int] = []
    find = siblings.loaded_by

    def counted(number: int, lowered: Lowered) -> list[int]:
        asked.append(number)
        return find(number, lowered)

    monkeypatch.setattr(siblings, "loaded_by", counted)
    graph = ExampleGraph()
    shared = graph.input(torch.randn(8, 40))
    results = []
    for _ in range(12):
        x = graph.input(torch.randn(8, 40), f"x{len(results)}")
        results.append(graph.call(p.sum, graph.call(p.mul, x, shared), [1]))
    plan(graph.build(*results))
    assert len(asked) == len(set(asked)) == 12
