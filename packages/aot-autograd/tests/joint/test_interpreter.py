"""Recorded operators know the user's line, forward and backward."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import nn
from torch.fx import Graph, GraphModule, symbolic_trace

from aot_autograd import compile_joint, trace_joint
from fx_interface.errors import UnsupportedProgramError, UserLocation
from fx_interface.torch_internals import modes


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


def _scaled_by(k: int) -> Any:
    return lambda x: (x * k).sin().sum()


def test_graphs_are_traced_in_threads(library: Any) -> None:
    # torch.fx's own tracing is for one thread at a time
    graphs = [symbolic_trace(_scaled_by(k)) for k in range(20)]

    def traced(graph: Any) -> str:
        made = trace_joint(graph, [torch.ones(3, requires_grad=True)], operators=library)
        return str(made.forward.graph) + str(made.backward and made.backward.graph)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(traced, graphs)) == list(map(traced, graphs))


def _compiled(build: Any, example: torch.Tensor, library: Any) -> Any:
    graph = Graph()
    graph.output(build(graph, graph.placeholder("x")))
    return compile_joint(
        GraphModule(nn.Module(), graph),
        [example],
        operators=library,
        forward_compiler=lambda module: module.forward,
    )


def _in_inference_mode(graph: Graph, x: Any) -> Any:
    block = graph.call_function(modes.enter_inference_mode, (True,))
    inside = graph.call_function(torch.mul, (x, 2))
    row = graph.call_function(torch.select, (inside, 0, 0))
    shown = graph.call_function(torch.select, (x, 0, 0))
    graph.call_function(modes.exit_inference_mode, (block,))
    return inside, row, shown, graph.call_function(torch.mul, (x, 3))


def test_what_is_made_in_inference_mode_is_an_inference_tensor(library: Any) -> None:
    x = torch.ones(2, 3)
    inside, row, shown, after = _compiled(_in_inference_mode, x, library)(x)
    assert [t.is_inference() for t in (inside, row, shown, after)] == [True, True, False, False]
    assert row.data_ptr() == inside.data_ptr()
    assert shown.data_ptr() == x.data_ptr()
    assert torch.equal(after, torch.full((2, 3), 3.0))


def test_what_shares_the_memory_of_an_inference_tensor_is_one(library: Any) -> None:
    def build(graph: Graph, x: Any) -> Any:
        block = graph.call_function(modes.enter_inference_mode, (True,))
        inside = graph.call_function(torch.mul, (x, 2))
        other = graph.call_function(torch.mul, (x, 3))
        graph.call_function(modes.exit_inference_mode, (block,))
        row = graph.call_function(torch.select, (inside, 0, 0))
        return row, graph.call_method("detach", (other,)), graph.call_method("clone", (inside,))

    made = _compiled(build, torch.ones(2, 3), library)(torch.ones(2, 3))
    assert [t.is_inference() for t in made] == [True, True, False]


def test_leaving_inference_mode_is_refused(library: Any) -> None:
    def build(graph: Graph, x: Any) -> Any:
        block = graph.call_function(modes.enter_inference_mode, (False,))
        made = graph.call_function(torch.mul, (x, 2))
        graph.call_function(modes.exit_inference_mode, (block,))
        return (made,)

    with torch.inference_mode(), pytest.raises(UnsupportedProgramError, match="AOT120"):
        _compiled(build, torch.ones(2), library)
    assert not torch.is_inference_mode_enabled()


def test_a_failing_trace_leaves_the_blocks_that_it_entered(library: Any) -> None:
    def build(graph: Graph, x: Any) -> Any:
        graph.call_function(modes.enter_inference_mode, (True,))
        return (graph.call_function(torch.reshape, (x, (7,))),)

    with pytest.raises(UnsupportedProgramError, match="AOT101"):
        _compiled(build, torch.ones(2), library)
    assert not torch.is_inference_mode_enabled()


def test_a_program_that_turns_gradients_on(library: Any) -> None:
    def build(graph: Graph, x: Any) -> Any:
        before = graph.call_function(torch.mul, (x, 2))
        graph.call_function(torch._C._set_grad_enabled, (True,))
        return before, graph.call_function(torch.mul, (x, 3))

    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        before, after = _compiled(build, x, library)(x)
        assert not torch.is_grad_enabled()
    assert not before.requires_grad
    after.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0, 3.0]
