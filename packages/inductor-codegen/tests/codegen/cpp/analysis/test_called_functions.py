"""Small loops call functions of vectors; loops that reduce or compute much write them out."""

from __future__ import annotations

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.cpp.emit import emit_kernel
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper


@pytest.mark.parametrize("name", ["tanh", "erf", "log"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("more", [0, 20])
def test_by_what_else_a_loop_computes(name: str, dtype: torch.dtype, more: int) -> None:
    graph = ExampleGraph()
    x = graph.input((torch.rand(3, 77) + 0.5).to(dtype))
    computed = graph.call(p.convert_dtype, x, torch.float32) if dtype is torch.bfloat16 else x
    result = graph.call(getattr(p, name), computed)
    for _ in range(more):
        result = graph.call(p.sub, graph.call(p.mul, result, computed), computed)
    module = graph.build(result)
    (kernel,) = (program := plan(module)).kernels
    text = emit_kernel(kernel)
    assert (f"wide_{name}f(" in text) == (not more and dtype is not torch.float64)
    assert (f"single_{name}(" in text) == (bool(more) and dtype is not torch.float64)
    torch.testing.assert_close(Stepper(program)(*graph.examples), module(*graph.examples))


def test_a_sum_is_no_small_loop() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(30, 500))
    (kernel,) = plan(graph.build(graph.call(p.sum, graph.call(p.tanh, x), [1]))).kernels
    assert "single_tanh(" in emit_kernel(kernel)
