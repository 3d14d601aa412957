"""Kernels whose programs take points of one row give what others do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.triton.kernel import kernel_source
from inductor_codegen.ir.gpu.blocks import takes_strips
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph

Interpret = Callable[..., Callable[..., Any]]


@pytest.mark.parametrize("shape", [(3, 5, 900), (7, 2900), (2, 513 * 2)])
def test_rows_numbers_are_loaded_once_and_right(shape: tuple[int, ...], interpret: Interpret) -> None:
    points = shape[-1]
    x, top, scale = torch.randn(shape), torch.randn(shape[:-1]), torch.randn(shape[:-1])
    graph = ExampleGraph()
    dims = list(range(len(shape) - 1))
    given = graph.input(x)
    one, other = (
        graph.call(p.broadcast_in_dim, graph.input(number, name), list(shape), dims)
        for number, name in ((top, "top"), (scale, "scale"))
    )
    made = graph.call(p.mul, graph.call(p.exp, graph.call(p.sub, given, one)), other)
    program = plan(graph.build(made))
    (kernel,) = program.kernels
    assert takes_strips(kernel) == (points != 1026)
    expected = torch.exp(x - top[..., None]) * scale[..., None]
    torch.testing.assert_close(interpret(program)(x, top, scale)[0], expected)
    if takes_strips(kernel):
        assert f"// ({points})" not in kernel_source(kernel)
