"""Indices are 32 bits wide where all of them are known to fit, and 64 bits wide otherwise."""

from __future__ import annotations

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.triton.index_width import index_type
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph


def width(graph: ExampleGraph, *outputs: object) -> set[str]:
    return {index_type(kernel) for kernel in plan(graph.build(*outputs)).kernels}


@pytest.mark.parametrize("rows, expected", [(1 << 20, "tl.int32"), (1 << 21, "tl.int64")])
def test_of_static_sizes(rows: int, expected: str) -> None:
    graph = ExampleGraph()
    x = graph.input(torch.empty(1, dtype=torch.int8).expand(rows, 1 << 10))
    assert width(graph, graph.call(p.neg, x)) == {expected}


def test_of_symbolic_sizes_and_of_indices_from_data() -> None:
    graph = ExampleGraph()
    size = graph.symbol()
    x = graph.input(torch.randn(8, 11))
    assert size is not None
    assert width(graph, graph.call(p.neg, x)) == {"tl.int64"}
    graph = ExampleGraph()
    table = graph.input(torch.randn(5, 3))
    index = graph.input(torch.tensor([0, -1, 4]), "i")
    assert width(graph, graph.call(p.index, table, [index])) == {"tl.int64"}
