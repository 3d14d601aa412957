"""Recorded operators know the user's line, forward and backward."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import nn
from torch.fx import GraphModule, symbolic_trace

from aot_autograd import trace_joint
from fx_interface.errors import UnsupportedProgramError, UserLocation


def located(function: Any) -> GraphModule:
    graph = symbolic_trace(function)
    for line, node in enumerate(graph.graph.nodes):
        node.meta["where"] = UserLocation("user.py", line, "f")
    return graph


def lines(graph: GraphModule) -> dict[str, int]:
    return {
        n.target.name(): n.meta["where"].line
        for n in graph.graph.nodes
        if "where" in n.meta and n.op != "output"
    }


def test_backward_operators_belong_to_the_line_of_their_forward(library: Any) -> None:
    graph = located(lambda x: x.sin().exp().tanh())
    traced = trace_joint(graph, [torch.ones(3, requires_grad=True)], operators=library)
    assert lines(traced.forward) == {"aten::sin": 1, "aten::exp": 2, "aten::tanh": 3}
    assert traced.backward is not None
    backward = lines(traced.backward)
    assert backward["aten::tanh_backward"] == 3
    assert backward["aten::cos"] == 1


def test_what_cannot_be_traced_names_the_line(library: Any) -> None:
    graph = located(lambda x: x.exp().sum().item())
    with pytest.raises(UnsupportedProgramError) as caught:
        trace_joint(graph, [torch.ones(3)], operators=library)
    assert caught.value.code == "AOT106"
    assert caught.value.where == UserLocation("user.py", 3, "f")


def test_a_call_of_a_module_is_refused(library: Any) -> None:
    graph = symbolic_trace(nn.Sequential(nn.Linear(2, 2)))
    with pytest.raises(UnsupportedProgramError, match="AOT100"):
        trace_joint(graph, [torch.ones(2, 2)], operators=library)


def test_a_graph_that_seeds_is_refused(library: Any) -> None:
    graph = symbolic_trace(lambda x: x + torch.rand(3))
    with graph.graph.inserting_after(graph.graph.find_nodes(op="placeholder")[0]):
        graph.graph.call_function(torch.manual_seed, (3,))
    state = torch.get_rng_state()
    with pytest.raises(UnsupportedProgramError, match="AOT119"):
        trace_joint(graph, [torch.ones(3)], operators=library)
    assert torch.equal(torch.get_rng_state(), state)


def test_graphs_are_traced_in_threads(library: Any) -> None:
    def traced(k: int) -> str:
        graph = symbolic_trace(lambda x: (x * k).sin().sum())
        made = trace_joint(graph, [torch.ones(3, requires_grad=True)], operators=library)
        return str(made.forward.graph) + str(made.backward and made.backward.graph)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(traced, range(20))) == [traced(k) for k in range(20)]
