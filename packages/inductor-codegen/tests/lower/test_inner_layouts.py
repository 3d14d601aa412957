"""Values inside of a program lie as what they are computed from; what is seen from outside lies as its spec says.

Decompositions give what they compute row-major specs, whatever the strides of their operands.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.fx import Node

from fx_interface.dialects import prims as p
from fx_interface.graph import set_spec, spec_of_node
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from inductor_codegen.lower.lowering import lower
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper

SIZES = (2, 8, 4, 6)
ROW_MAJOR = (192, 24, 6, 1)
CHANNELS_LAST = (192, 1, 48, 8)


def channels_last(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes).contiguous(memory_format=torch.channels_last)


def decomposed(graph: ExampleGraph, target: Any, *args: Any) -> Node:
    """A call whose result has a row-major spec."""
    node = graph.call(target, *args)
    spec = spec_of_node(node)
    assert isinstance(spec, TensorSpec)
    graph.values[node] = graph.values[node].contiguous()
    return set_spec(node, replace(spec, strides=contiguous_strides(spec.sizes)))


def strides(graph: ExampleGraph, node: Node, *outputs: Node) -> tuple[object, ...]:
    lowered, _ = lower(graph.build(*outputs))
    (value,) = (value for value in lowered.values if value.name == node.name)
    return value.strides


def test_as_its_operand_lies() -> None:
    graph = ExampleGraph()
    inner = decomposed(graph, p.exp, graph.input(channels_last(*SIZES)))
    scale = graph.call(p.broadcast_in_dim, graph.input(torch.randn(8), "w"), [*SIZES], [1])
    scaled = decomposed(graph, p.mul, inner, scale)
    results = graph.call(p.sum, scaled, [0, 2, 3]), graph.call(p.neg, scaled)
    assert strides(graph, inner, *results) == CHANNELS_LAST
    assert strides(graph, scaled, *results) == CHANNELS_LAST


def test_what_is_repeated_does_not_decide() -> None:
    graph = ExampleGraph()
    means = graph.input(torch.randn(2, 4), "m")  # of groups of two channels: no strides say it
    spread = graph.call(p.broadcast_in_dim, graph.call(p.reshape, means, [2, 4, 1]), [2, 4, 2], [0, 1, 2])
    of_channels = graph.call(p.reshape, spread, [2, 8])
    full = graph.call(p.broadcast_in_dim, of_channels, [*SIZES], [0, 1])
    inner = decomposed(graph, p.sub, graph.input(channels_last(*SIZES)), full)
    assert strides(graph, inner, graph.call(p.sum, inner, [2, 3])) == CHANNELS_LAST


def test_through_views() -> None:
    graph = ExampleGraph()
    groups = graph.call(p.reshape, graph.input(channels_last(*SIZES)), [2, 4, 2, 24])
    inner = decomposed(graph, p.exp, groups)
    assert strides(graph, inner, graph.call(p.sum, inner, [3])) == (192, 2, 1, 8)


def test_outputs_lie_as_specs_say() -> None:
    graph = ExampleGraph()
    inner = decomposed(graph, p.exp, graph.input(channels_last(*SIZES)))
    assert strides(graph, inner, inner) == ROW_MAJOR


def test_arguments_of_library_calls_lie_as_specs_say() -> None:
    graph = ExampleGraph()
    inner = decomposed(graph, p.exp, graph.input(torch.randn(6, 5).t()))
    product = graph.call(torch.ops.aten.mm.default, inner, graph.input(torch.randn(6, 3), "w"))
    assert strides(graph, inner, product) == (6, 1)


def test_copies_stay_as_they_were_asked_for() -> None:
    graph = ExampleGraph()
    copy = decomposed(graph, p.clone, graph.input(channels_last(*SIZES)))
    assert strides(graph, copy, graph.call(p.sum, copy, [3])) == ROW_MAJOR


def test_operands_that_lie_in_two_ways_decide_nothing() -> None:
    graph = ExampleGraph()
    x, y = graph.input(channels_last(*SIZES)), graph.input(torch.randn(*SIZES), "y")
    both = decomposed(graph, p.mul, x, y)
    assert strides(graph, both, graph.call(p.sum, both, [3])) == ROW_MAJOR


def test_what_strides_cannot_say_decides_nothing() -> None:
    graph = ExampleGraph()
    flat = graph.call(p.reshape, graph.input(channels_last(*SIZES)), [2, 4, 48])
    inner = decomposed(graph, p.exp, flat)
    assert strides(graph, inner, graph.call(p.sum, inner, [2])) == (192, 48, 1)


def test_sizes_that_vary() -> None:
    graph = ExampleGraph()
    rows, columns = graph.symbol(), graph.symbol()
    inner = decomposed(graph, p.exp, graph.input(torch.randn(13, 11).t()))
    assert strides(graph, inner, graph.call(p.sum, inner, [0])) == (1, rows)
    assert columns != rows


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_program_computes_the_same(dtype: torch.dtype) -> None:
    graph = ExampleGraph()
    x, w = graph.input(channels_last(*SIZES).to(dtype)), graph.input(torch.randn(8).to(dtype), "w")
    scaled = decomposed(graph, p.mul, x, graph.call(p.broadcast_in_dim, w, [*SIZES], [1]))
    total = graph.call(p.broadcast_in_dim, graph.call(p.sum, scaled, [2, 3]), [*SIZES], [0, 1])
    results = decomposed(graph, p.mul, scaled, total), decomposed(graph, p.mul, scaled, scaled)
    made = Stepper(plan(graph.build(*results)), interpreted=True)(*graph.examples)
    for mine, node in zip(made, results, strict=True):
        torch.testing.assert_close(mine, graph.values[node], rtol=0.05, atol=0.05)
        assert mine.stride() == ROW_MAJOR


@pytest.mark.parametrize("image", [False, True])
def test_rows_where_operands_disagree(image: bool) -> None:
    """A residual stream that begins transposed is in rows from the first sum with what lies in rows; images are not."""
    graph = ExampleGraph()
    sizes = (2, 3, 4, 6) if image else (2, 4, 6)
    turned = graph.input(torch.randn(*sizes[:-2], 6, 4).transpose(-1, -2))
    inner = graph.call(p.add, turned, graph.input(torch.randn(*sizes), "y"))
    assert strides(graph, inner, graph.call(p.sum, inner, [len(sizes) - 1])) == (
        (72, 24, 1, 4) if image else (24, 6, 1)
    )


def test_what_follows_lies_as_its_operands_were_arranged() -> None:
    graph = ExampleGraph()
    turned = graph.input(torch.randn(2, 6, 4).transpose(1, 2))
    rows = graph.input(torch.randn(2, 4, 6), "r")
    added = graph.call(p.add, turned, rows)
    narrow = graph.call(p.convert_dtype, added, torch.bfloat16)  # torch lays both as the first operand
    results = graph.call(p.sum, narrow, [2]), graph.call(p.neg, narrow)
    assert spec_of_node(narrow).strides == (24, 1, 4)
    assert strides(graph, added, *results) == (24, 6, 1)
    assert strides(graph, narrow, *results) == (24, 6, 1)
