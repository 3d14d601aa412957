"""Values at a point: which part of joined tensors it lies in."""

from __future__ import annotations

import torch

from fx_interface.dialects import prims as p
from inductor_codegen import CodegenOptions, compile_graph
from inductor_codegen.testing import ExampleGraph


def test_a_sum_over_joined_tensors_without_elements() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(0, 3))
    joined = graph.call(p.cat, [graph.call(p.neg, x), x], 1)
    module = graph.build(graph.call(p.sum, joined, [0]))
    (found,) = compile_graph(module, CodegenOptions())(torch.randn(0, 3))
    assert torch.equal(found, torch.zeros(6))
