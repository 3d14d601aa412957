"""Loops that choose row by row between memory and a constant: they read an array of the constant instead."""

from __future__ import annotations

from itertools import product
from math import inf

import pytest
import torch
from torch.fx import GraphModule

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.cpp.emit import emit_kernel
from inductor_codegen.codegen.cpp.text.fillers import LONGEST
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper


def windows(x: torch.Tensor, border: float, *, squared: bool = False) -> GraphModule:
    """The largest of 3 x 3 neighbours in images with their channels last."""
    graph = ExampleGraph()
    node = graph.input(x)
    if squared:
        node = graph.call(p.mul, node, node)
    images, height, width, channels = x.shape
    padded = graph.call(p.pad, node, [0, 1, 1, 0], [0, 1, 1, 0], border)
    found = None
    for row, column in product(range(3), range(3)):
        starts, ends = [0, row, column, 0], [images, row + height, column + width, channels]
        part = graph.call(p.slice_, padded, starts, ends, [1, 1, 1, 1])
        found = part if found is None else graph.call(p.maximum, part, found)
    return graph.build(found)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("border", [-inf, 0.0, 1.5])
def test_rows_outside_read_the_constant(dtype: torch.dtype, border: float) -> None:
    x = torch.randn(2, 9, 10, 40).to(dtype)
    graph = windows(x, border)
    made = plan(graph)
    (kernel,) = made.kernels
    text = emit_kernel(kernel)
    loop = text[text.index("#pragma omp simd") :]
    assert "filler0[40]" in text
    assert "?" not in loop[: loop.index("}")]
    (found,) = Stepper(made)(x)
    assert torch.equal(found, graph(x)[0])


def test_computed_values_and_long_rows_are_chosen_at_each_point() -> None:
    assert "filler" not in emit_kernel(
        plan(windows(torch.randn(2, 9, 10, 40), -inf, squared=True)).kernels[0]
    )
    assert "filler" not in emit_kernel(plan(windows(torch.randn(1, 3, 3, LONGEST + 1), -inf)).kernels[0])
