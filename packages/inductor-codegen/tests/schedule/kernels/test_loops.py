"""Loops: merged where memory runs through, and the innermost one along memory."""

from __future__ import annotations

import torch
from torch.fx import Node

from fx_interface.dialects import prims as p
from fx_interface.symbols import IntLike
from inductor_codegen.ir.index import LoopVar, as_index
from inductor_codegen.ir.kernel import Kernel, Vector
from inductor_codegen.pipeline import plan
from inductor_codegen.schedule.kernels.loops import merge
from inductor_codegen.testing import ExampleGraph, GpuGraph


def only(graph: ExampleGraph, *outputs: Node) -> Kernel:
    (kernel,) = plan(graph.build(*outputs)).kernels
    return kernel


def extents(kernel: Kernel) -> tuple[list[IntLike], list[IntLike]]:
    return [loop.extent for loop in kernel.outer], [loop.extent for loop in kernel.inner]


def test_contiguous_loops_are_one() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(3, 4, 5))
    assert extents(only(graph, graph.call(p.exp, x))) == ([], [60])


def test_broadcast_keeps_two_loops() -> None:
    graph = ExampleGraph()
    x, b = graph.input(torch.randn(3, 4, 5)), graph.input(torch.randn(5), "b")
    spread = graph.call(p.broadcast_in_dim, b, [3, 4, 5], [2])
    assert extents(only(graph, graph.call(p.add, x, spread))) == ([12], [5])


def test_transposed_input_and_output_run_along_memory() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(6, 8).t())
    assert extents(only(graph, graph.call(p.exp, x))) == ([], [48])


def test_merged_heads_are_split_instead_of_divided() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(2, 4, 12, 8))
    merged = graph.call(p.reshape, graph.call(p.permute, x, [0, 2, 1, 3]), [2, 12, 32])
    kernel = only(graph, graph.call(p.exp, merged))
    assert extents(kernel) == ([2, 12, 4], [8])


def test_parts_that_are_computed_do_not_cut_the_loop_over_what_joins_them() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(6, 64))
    odd, even = (graph.call(p.slice_, x, [0, first], [6, 64], [1, 2]) for first in (1, 0))
    joined = graph.call(p.cat, [graph.call(p.neg, odd), even], 1)
    assert extents(only(graph, graph.call(p.exp, joined))) == ([6], [64])


def test_merge_replaces_both_variables() -> None:
    a, b = LoopVar("a", 3), LoopVar("b", 4)
    merged, replaced = merge([a, b], [as_index(a) * 4 + as_index(b)])
    assert merged == [LoopVar("b", 12)]
    assert replaced == {a: as_index(a) * 0, b: as_index(LoopVar("b", 12))}


def test_merge_refuses_other_strides() -> None:
    a, b = LoopVar("a", 3), LoopVar("b", 4)
    merged, _ = merge([a, b], [as_index(a) * 4 + as_index(b), as_index(b)])
    assert merged == [a, b]


def test_symbolic_loops_merge() -> None:
    graph = ExampleGraph()
    s, t = graph.symbol(), graph.symbol()
    x = graph.input(torch.randn(11, 13, 4))
    outer, inner = extents(only(graph, graph.call(p.exp, x)))
    assert (outer, inner) == ([], [s * t * 4])


def test_vectors_of_channels_do_not_outweigh_the_image() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(2, 64, 16))
    for _ in range(4):
        channel = graph.call(p.broadcast_in_dim, graph.input(torch.randn(64)), [2, 64, 16], [1])
        x = graph.call(p.add, x, channel)
    assert extents(only(graph, x)) == ([2, 64], [16])


def test_the_loop_that_looks_rows_up_is_not_the_one_along_memory() -> None:
    """The sum of the rows that data name: neighbours in memory are along a row."""
    graph = ExampleGraph()
    table, places = graph.input(torch.randn(50, 64)), graph.input(torch.arange(40).reshape(5, 8))
    found = graph.call(p.index, table, [places, None])
    *_, kernel = plan(graph.build(graph.call(p.sum, found, [1]))).kernels
    assert kernel.vector is Vector.OUTER
    assert kernel.outer[-1].extent == 64


def test_points_that_use_totals_of_other_kernels_run_through_memory() -> None:
    """A library call needs the channels' totals before: nothing keeps a channel's points together after it."""
    graph = ExampleGraph()
    sizes = [3, 8, 5, 7]
    x = graph.input(torch.randn(sizes).to(memory_format=torch.channels_last))
    total = graph.call(p.sum, x, [0, 2, 3])
    mixed = graph.call(torch.ops.aten.mv.default, graph.input(torch.randn(8, 8), "weight"), total)
    by_channel = graph.call(p.broadcast_in_dim, total, sizes, [1])
    scaled = graph.call(p.mul, x, by_channel)
    result = graph.call(p.add, scaled, graph.call(p.broadcast_in_dim, mixed, sizes, [1]))
    *_, last = plan(graph.build(result)).kernels
    assert extents(last) == ([105], [8])


def test_rows_lie_side_by_side_where_something_runs_through_memory_along_them() -> None:
    """Programs of a GPU take tiles then, which are whole lines of memory both ways."""
    mixed = GpuGraph()
    x, y = mixed.input(torch.randn(4, 40, 64)), mixed.input(torch.randn(4, 64, 40), "y")
    product = mixed.call(p.mul, x, mixed.call(p.permute, y, [0, 2, 1]))
    kernel = only(mixed, mixed.call(p.sum, product, [0, 2]))
    assert kernel.vector is Vector.OUTER
    few = GpuGraph()
    x, y = few.input(torch.randn(4, 8, 64)), few.input(torch.randn(4, 64, 8), "y")
    product = few.call(p.mul, x, few.call(p.permute, y, [0, 2, 1]))
    assert only(few, few.call(p.sum, product, [0, 2])).vector is Vector.INNER
