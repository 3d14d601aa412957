"""Loops that choose by their indices: how they are split, that the parts compute the same, and that they stay few."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.fx import GraphModule

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.cpp.analysis.index_set_splitting import (
    MOST_PARTS,
    Choice,
    Cut,
    Part,
    Parts,
    parts_of,
)
from inductor_codegen.codegen.cpp.emit import emit_kernel
from inductor_codegen.ir.kernel import Kernel
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper


def leaves(parts: Parts) -> list[Part]:
    match parts:
        case Part():
            return [parts]
        case Choice(_, first, second) | Cut(_, first, second):
            return leaves(first) + leaves(second)


def split(kernel: Kernel) -> Parts:
    return parts_of(kernel.passes[0].points, kernel.inner[-1])


def rolled(graph: ExampleGraph) -> GraphModule:
    x = graph.input(torch.randn(6, 20, 40))
    for dim, shift, size in ((1, 3, 20), (2, 7, 40)):
        starts, ends = [0, 0, 0], [6, 20, 40]
        starts[dim], ends[dim] = size - shift, size - shift
        tail = graph.call(p.slice_, x, starts, [6, 20, 40], [1, 1, 1])
        x = graph.call(p.cat, [tail, graph.call(p.slice_, x, [0, 0, 0], ends, [1, 1, 1])], dim)
    return graph.build(x)


def padded(graph: ExampleGraph) -> GraphModule:
    x = graph.input(torch.randn(5, 30, 50))
    return graph.build(graph.call(p.pad, x, [0, 2, 3], [0, 1, 4], 1.5))


def triangle(graph: ExampleGraph) -> GraphModule:
    x = graph.input(torch.randn(60, 70))
    row = graph.call(p.broadcast_in_dim, graph.call(p.iota, 60, 0, 1, torch.int64, "cpu"), [60, 70], [0])
    column = graph.call(p.broadcast_in_dim, graph.call(p.iota, 70, 0, 1, torch.int64, "cpu"), [60, 70], [1])
    return graph.build(graph.call(p.where, graph.call(p.le, column, row), x, 0.0))


def diagonal(graph: ExampleGraph) -> GraphModule:
    x = graph.input(torch.randn(60, 70))
    row = graph.call(p.broadcast_in_dim, graph.call(p.iota, 60, 0, 1, torch.int64, "cpu"), [60, 70], [0])
    column = graph.call(p.broadcast_in_dim, graph.call(p.iota, 70, 69, -1, torch.int64, "cpu"), [60, 70], [1])
    return graph.build(graph.call(p.where, graph.call(p.eq, column, row), x, 0.0))


def reflected(graph: ExampleGraph) -> GraphModule:
    x = graph.input(torch.randn(4, 50))
    place = graph.call(p.sub, graph.call(p.iota, 58, 0, 1, torch.int64, "cpu"), 4)
    turned = graph.call(p.sub, 49, graph.call(p.abs, graph.call(p.sub, 49, graph.call(p.abs, place))))
    return graph.build(graph.call(p.index, x, [None, turned]))


def replicated(graph: ExampleGraph) -> GraphModule:
    x = graph.input(torch.randn(4, 50))
    place = graph.call(p.sub, graph.call(p.iota, 58, 0, 1, torch.int64, "cpu"), 4)
    inside = graph.call(p.minimum, graph.call(p.maximum, place, 0), 49)
    return graph.build(graph.call(p.index, x, [None, inside]))


def joined_symbolic(graph: ExampleGraph) -> GraphModule:
    s = graph.symbol()
    x, y = graph.input(torch.randn(3, 11)), graph.input(torch.randn(3, 40), "y")
    assert s is not None
    return graph.build(graph.call(p.neg, graph.call(p.cat, [x, y, graph.call(p.exp, x)], 1)))


def halves_joined(graph: ExampleGraph) -> GraphModule:
    x, y = graph.input(torch.randn(3, 100).half()), graph.input(torch.randn(3, 600).half(), "y")
    wide = [graph.call(p.convert_dtype, each, torch.float32) for each in (x, y)]
    return graph.build(graph.call(p.mul, graph.call(p.cat, wide, 1), 2.0))


CASES: list[tuple[Callable[[ExampleGraph], GraphModule], int]] = [
    (rolled, 4),
    (padded, 5),
    (triangle, 2),
    (diagonal, 3),
    (replicated, 3),
    (reflected, 3),
    (joined_symbolic, 3),
    (halves_joined, 2),
]


@pytest.mark.parametrize(("make", "count"), CASES)
def test_parts_choose_nothing_any_more(make: Callable[[ExampleGraph], GraphModule], count: int) -> None:
    (kernel,) = plan(make(ExampleGraph())).kernels
    assert len(leaves(split(kernel))) == count
    text = emit_kernel(kernel)
    assert "const bool" not in text
    assert "wrap_index" not in text


@pytest.mark.parametrize("make", [make for make, _ in CASES])
def test_parts_compute_the_reference(make: Callable[[ExampleGraph], GraphModule]) -> None:
    graph = ExampleGraph()
    module = make(graph)
    found = Stepper(plan(module), threads=2)(*graph.examples)
    for got, want in zip(found, module(*graph.examples), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-6, atol=1e-6)


def test_a_loop_of_one_block_after_the_other_is_cut_within_each() -> None:
    graph = ExampleGraph()
    x, y = graph.input(torch.randn(5000)), graph.input(torch.randn(90_000), "y")
    module = graph.build(graph.call(p.mul, graph.call(p.cat, [x, y], 0), 2.0))
    (found,) = Stepper(plan(module), threads=3)(*graph.examples)
    assert torch.equal(found, module(*graph.examples)[0])


def test_parts_stay_few() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(3, 400))
    for size in range(1, 40):
        part = graph.call(p.slice_, x, [0, 0], [3, 400 - 2 * size], [1, 1])
        x = graph.call(p.add, x, graph.call(p.pad, graph.call(p.exp, part), [0, size], [0, size], 0.0))
    for kernel in plan(graph.build(x)).kernels:
        assert len(leaves(split(kernel))) <= MOST_PARTS
