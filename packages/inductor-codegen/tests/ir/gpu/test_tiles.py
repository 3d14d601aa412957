"""Tiles are for pointwise kernels whose buffers run along different loops."""

from __future__ import annotations

import torch

from fx_interface.dialects import prims as p
from inductor_codegen.ir.gpu.blocks import point_loops, row_loops
from inductor_codegen.ir.gpu.tiles import tile_of
from inductor_codegen.ir.kernel import Kernel
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph


def sum_of(*inputs: torch.Tensor) -> Kernel:
    graph = ExampleGraph()
    nodes = [graph.input(tensor, f"x{number}") for number, tensor in enumerate(inputs)]
    result = nodes[0]
    for node in nodes[1:]:
        result = graph.call(p.add, result, node)
    (kernel,) = plan(graph.build(graph.call(p.neg, result))).kernels
    return kernel


def test_an_input_against_the_grain() -> None:
    kernel = sum_of(torch.randn(40, 50), torch.randn(50, 40).t())
    tile = tile_of(kernel)
    assert tile is not None
    assert [loop.extent for loop in tile] == [40, 50]
    assert row_loops(kernel) == tile[:1]
    assert point_loops(kernel) == tile[1:]


def test_loops_in_front_are_rows() -> None:
    kernel = sum_of(torch.randn(3, 40, 50), torch.randn(3, 50, 40).transpose(1, 2))
    assert [loop.extent for loop in row_loops(kernel)] == [3, 40]
    assert [loop.extent for loop in point_loops(kernel)] == [50]


def test_where_there_is_no_need() -> None:
    assert tile_of(sum_of(torch.randn(40, 50), torch.randn(40, 50))) is None
    assert tile_of(sum_of(torch.randn(40, 50), torch.randn(50).expand(40, 50))) is None
    assert tile_of(sum_of(torch.randn(40, 50), torch.randn(40, 1).expand(40, 50))) is None
    assert tile_of(sum_of(torch.randn(40, 3), torch.randn(3, 40).t())) is None
    assert tile_of(sum_of(torch.randn(20, 40, 50), torch.randn(40, 20, 50).transpose(0, 1))) is None


def test_short_loops_are_rows() -> None:
    for inputs in [
        (torch.randn(10, 300), torch.randn(300, 10).t()),
        (torch.randn(300, 10), torch.randn(10, 300).t()),
    ]:
        tile = tile_of(sum_of(*inputs))
        assert tile is not None
        assert [loop.extent for loop in tile] == [10, 300]
