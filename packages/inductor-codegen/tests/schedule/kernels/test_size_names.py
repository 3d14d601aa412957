"""Kernels name their sizes themselves: the same work over other sizes of a program is the same kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import Node

from fx_interface.dialects import prims as p
from inductor_codegen.ir.program import RunKernel
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper


def total(graph: ExampleGraph, x: Node, size: Any) -> Node:
    return graph.call(p.sum, graph.call(p.exp, x), (1,))


def joined(graph: ExampleGraph, x: Node, size: Any) -> Node:
    return graph.call(p.cat, [graph.call(p.exp, x), x], 1)


def turned(graph: ExampleGraph, x: Node, size: Any) -> Node:
    places = graph.call(p.iota, size, size * -1, 1, torch.int64, torch.device("cpu"))
    return graph.call(p.index, x, [None, graph.call(p.add, places, 0)])


@pytest.mark.parametrize("work", [total, joined, turned])
def test_rows_of_two_lengths_take_one_kernel(work: Callable[..., Node]) -> None:
    graph = ExampleGraph()
    lengths = [graph.symbol(), graph.symbol()]
    rows = [torch.randn(4, graph.builder.env.hint(length)) for length in lengths]
    results = [
        work(graph, graph.input(row, name), length)
        for row, name, length in zip(rows, "xy", lengths, strict=True)
    ]
    program = plan(graph.build(*results))
    calls = [step for step in program.steps if isinstance(step, RunKernel)]
    assert len(program.kernels) == 1
    assert [call.sizes for call in calls] == [(length,) for length in lengths]
    found = Stepper(program)(*(row.shape[1] for row in rows), *rows)
    for result, node in zip(found, results, strict=True):
        torch.testing.assert_close(result, graph.values[node])


def test_a_kernel_that_tells_its_sizes_apart() -> None:
    graph = ExampleGraph()
    short, long = graph.symbol(), graph.symbol()
    x = torch.randn(graph.builder.env.hint(short), graph.builder.env.hint(long))
    read = graph.input(x)
    both = graph.call(p.sum, read, (0,)), graph.call(p.sum, read, (1,))
    program = plan(graph.build(*both))
    results = Stepper(program)(*x.shape, x)
    torch.testing.assert_close(results, [x.sum(0), x.sum(1)])
