"""Attention's sub-graphs become programs, that of the derivative too; what is none runs as it is."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule, Node

from aot_autograd import compile_joint, trace_joint
from fx_interface.attention.operators import ATTENTION, ATTENTION_BACKWARD
from fx_interface.attention.programs import program_of
from fx_interface.regions import attention
from fx_interface.regions.attention import BLOCK_TENSORS, POINT_DTYPE, result_specs
from fx_interface.tensor_spec import SPEC_KEY, TensorSpec, spec_of

aten = torch.ops.aten
CPU = torch.device("cpu")


def sub_graph(
    first: Sequence[torch.dtype], operands: Sequence[torch.Tensor], write: Callable[..., Node]
) -> Any:
    graph = Graph()
    specs = [TensorSpec((), (), dtype, CPU) for dtype in (*first, *[POINT_DTYPE] * 4)]
    places = []
    for spec in [*specs, *map(spec_of, operands)]:
        places.append(graph.placeholder(f"p{len(places)}"))
        places[-1].meta[SPEC_KEY] = spec
    made = write(graph, *places)
    made.meta[SPEC_KEY] = TensorSpec((), (), first[0] if first else torch.bool, CPU)
    graph.output((made,))
    return GraphModule(torch.nn.Module(), graph)


def biased(graph: Graph, s: Node, b: Node, h: Node, q: Node, kv: Node, bias: Node) -> Node:
    read = graph.call_function(aten.index.Tensor, (bias, [h, kv]))
    return graph.call_function(torch.add, (graph.call_function(torch.tanh, (s,)), read))


def summed(graph: Graph, s: Node, b: Node, h: Node, q: Node, kv: Node, bias: Node) -> Node:
    return graph.call_function(torch.add, (s, graph.call_function(torch.sum, (bias,))))


def earlier(graph: Graph, b: Node, h: Node, q: Node, kv: Node) -> Node:
    return graph.call_function(torch.lt, (kv, q))


def whole(score: Callable[..., Node], examples: Sequence[torch.Tensor]) -> GraphModule:
    graph, root = Graph(), torch.nn.Module()
    root.add_module("score", sub_graph([examples[0].dtype], examples[3:], score))
    root.add_module("mask", sub_graph([], [], earlier))
    places = [graph.placeholder(name) for name in ("query", "key", "value", "bias")]
    for node, tensor in zip(places, examples, strict=True):
        node.meta[SPEC_KEY] = spec_of(tensor)
    bodies = [graph.get_attr(name) for name in ("score", "mask")]
    options = {"scale": 0.5, "block_size": None, "score_args": (0,), "mask_args": (), "with_max": False}
    args = (*bodies, *places[:3], *[None] * BLOCK_TENSORS, places[3])
    made = graph.call_function(attention, args, options)
    made.meta[SPEC_KEY] = result_specs(spec_of(examples[0]), spec_of(examples[2]), False)
    graph.output(
        tuple(graph.call_function(__import__("operator").getitem, (made, place)) for place in range(2))
    )
    return GraphModule(root, graph)


def inputs() -> list[torch.Tensor]:
    sizes = [(2, 4, 5, 3), (2, 2, 7, 3), (2, 2, 7, 6), (4, 7)]
    return [torch.randn(size, dtype=torch.float64, requires_grad=True) for size in sizes]


def test_both_halves_call_an_operator_with_programs(library: Any) -> None:
    given = inputs()
    traced = trace_joint(whole(biased, given), given, operators=library)
    (forward,) = traced.forward.graph.find_nodes(op="call_function", target=ATTENTION)
    assert traced.backward is not None
    (backward,) = traced.backward.graph.find_nodes(op="call_function", target=ATTENTION_BACKWARD)
    assert (
        len(program_of(forward.args[6]).graph.find_nodes(op="call_function", target=aten.index.Tensor)) == 1
    )
    assert backward.args[-2:] == ([0], [2]) or backward.args[-2:] == ((0,), (2,))
    joint = program_of(backward.args[-3])
    assert not joint.graph.find_nodes(op="call_function", target=aten.index_put.default)


@pytest.mark.parametrize("score", [biased, summed])
def test_results_and_gradients(score: Callable[..., Node], library: Any, caplog: Any) -> None:
    given = inputs()
    module = whole(score, given)
    with caplog.at_level(logging.WARNING):
        run = compile_joint(module, given, operators=library, forward_compiler=lambda graph: graph.forward)
    assert ("AOT128" in caplog.text) == (score is summed)

    def gradients(out: torch.Tensor, sums: torch.Tensor) -> Any:
        weight = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view(out.shape)
        return torch.autograd.grad((out * weight).sum() + sums[:, :, 1:].sin().sum(), given)

    found, expected = run(*given), module(*given)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    for one, other in zip(gradients(*found), gradients(*expected), strict=True):
        torch.testing.assert_close(one, other)
