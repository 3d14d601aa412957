"""Which pointwise kernels are taken in strips of rows."""

from __future__ import annotations

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen.ir.gpu.blocks import point_loops, row_loops, takes_strips
from inductor_codegen.ir.kernel import Kernel
from inductor_codegen.pipeline import plan
from inductor_codegen.testing.programs import GpuGraph


def kernel_of(rows: int, points: int, numbers: int, *, along: bool = False) -> Kernel:
    """A tensor with so many ``numbers`` of each row, or of each column (``along``), added."""
    graph = GpuGraph()
    made = graph.input(torch.randn(rows, points))
    for number in range(numbers):
        given = graph.input(torch.randn(points if along else rows), f"n{number}")
        made = graph.call(p.add, made, graph.call(p.broadcast_in_dim, given, [rows, points], [int(along)]))
    (kernel,) = plan(graph.build(made)).kernels
    return kernel


@pytest.mark.parametrize("points", [512, 1000, 50257])
def test_rows_with_several_numbers(points: int) -> None:
    kernel = kernel_of(96, points, 2)
    assert takes_strips(kernel)
    assert [loop.extent for loop in row_loops(kernel)] == [96]
    assert [loop.extent for loop in point_loops(kernel)] == [points]


@pytest.mark.parametrize(
    ("points", "numbers", "along"),
    [(1000, 1, False), (1000, 3, True), (100, 3, False), (1200, 3, False), (64, 3, False)],
)
def test_others(points: int, numbers: int, along: bool) -> None:
    kernel = kernel_of(96, points, numbers, along=along)
    assert not takes_strips(kernel)
    assert point_loops(kernel) == ()
