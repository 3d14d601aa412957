"""Loops that choose by their indices: how they are split, that the parts compute the same, and that they stay few."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
from torch.fx import GraphModule

from fx_interface.dialects import prims as p
from fx_interface.symbols import symbol
from inductor_codegen.codegen.cpp.analysis.index_set_splitting import (
    MOST_PARTS,
    Choice,
    Cut,
    Part,
    Parts,
    parts_of,
)
from inductor_codegen.codegen.cpp.emit import emit_kernel
from inductor_codegen.ir.index import Index, LoopVar, as_index
from inductor_codegen.ir.kernel import Kernel, Store
from inductor_codegen.ir.scalar import Guard, Guarded, Scalar, ScalarBuilder
from inductor_codegen.ir.traverse import postorder, roots_of
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper


def leaves(parts: Parts) -> list[Part]:
    match parts:
        case Part():
            return [parts]
        case Choice(_, first, second) | Cut(_, first, second):
            return leaves(first) + leaves(second)


def split(kernel: Kernel) -> Parts:
    return parts_of(kernel.passes[0].points, kernel.inner[-1], kernel.least_sizes)


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


ROW, COLUMN = (LoopVar(name, (symbol("s0") + 1) // 2) for name in ("i0", "i1"))


def windows() -> Store:
    """The largest of windows of 3 x 3 points that are two apart, of an image of s0 x s0 with a border of one."""
    make, size = ScalarBuilder(), symbol("s0")
    outside = make.constant(float("-inf"), torch.float32)
    found: Scalar = outside
    for row, column in itertools.product((-1, 0, 1), repeat=2):
        place = as_index(ROW) * 2 + row, as_index(COLUMN) * 2 + column
        guards = (Guard(place[0], 0, size), Guard(place[1], 0, size))
        read = make.load("in0", place[0] * size + place[1], torch.float32)
        found = make.apply("maximum", (make.guarded(guards, read, outside), found), torch.float32)
    return Store("out0", as_index(ROW) * COLUMN.extent + as_index(COLUMN), found)


def chooses(part: Part) -> bool:
    nodes = postorder(root for statement in part.statements for root in roots_of(statement))
    return any(isinstance(node, Guarded) for node in nodes)


def test_rows_inside_of_borders_choose_nothing() -> None:
    found = parts_of([windows()], COLUMN, {"s0": 2})
    assert isinstance(found, Choice)
    assert set(found.indices) == {as_index(ROW) * 2 + -1, Index(symbol("s0") - 2) - as_index(ROW) * 2}
    assert [chooses(part) for part in leaves(found.no)] == [True]
    assert [chooses(part) for part in leaves(found.yes)] == [False] * 3


def test_rows_choose_where_sizes_may_be_so_small_that_parts_are_too_many() -> None:
    assert not isinstance(parts_of([windows()], COLUMN), Choice)


def test_parts_stay_few() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(3, 400))
    for size in range(1, 40):
        part = graph.call(p.slice_, x, [0, 0], [3, 400 - 2 * size], [1, 1])
        x = graph.call(p.add, x, graph.call(p.pad, graph.call(p.exp, part), [0, size], [0, size], 0.0))
    for kernel in plan(graph.build(x)).kernels:
        assert len(leaves(split(kernel))) <= MOST_PARTS
