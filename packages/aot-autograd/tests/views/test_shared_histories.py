"""Results that get their gradient through another result whose history the base of their memory has not."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule, Proxy, symbolic_trace

from aot_autograd import compile_joint, trace_joint
from aot_autograd.plan import FromGraph, ViewOf
from fx_interface import differentiable
from fx_interface.errors import UnsupportedProgramError


def _filled(results: Callable[[Any], tuple[Any, ...]]) -> GraphModule:
    """A function of autograd writes its argument into fresh memory, past autograd, and returns that memory."""
    root = torch.nn.Module()
    root.add_module("forward_body", symbolic_trace(lambda memory, x: (memory.data.copy_(x), memory)[1:]))
    root.add_module("backward_body", symbolic_trace(lambda gradient: (None, gradient * 3)))
    graph = Graph()
    x = graph.placeholder("x")
    memory = graph.call_function(torch.zeros, (3, 2))
    bodies = graph.get_attr("forward_body"), graph.get_attr("backward_body")
    called = graph.call_function(differentiable, (*bodies, memory, x), {"results": 1})
    made = results(Proxy(graph.call_function(operator.getitem, (called, 0))))
    graph.output(tuple(result.node for result in made))
    return GraphModule(root, graph)


def _x() -> torch.Tensor:
    return torch.arange(6.0).view(3, 2).requires_grad_()


@pytest.mark.parametrize(
    "results",
    [
        lambda k: (k, k[:, 1]),
        lambda k: (k[0][1:], k, k.view(2, 3)),
        lambda k: (k.detach()[1], k.t(), k),
    ],
)
def test_views_of_a_result(results: Any, library: Any, interpreter: Any, outcome: Any, same: Any) -> None:
    graph = _filled(results)
    compiled = compile_joint(graph, [_x()], operators=library, forward_compiler=interpreter)
    same(outcome(graph, (_x(),)), outcome(compiled, (_x(),)))


def test_the_result_that_shows_all_stands_for_the_base(library: Any) -> None:
    plan = trace_joint(_filled(lambda k: (k[:, 1], k)), [_x()], operators=library).plan
    first, second = plan.recipes
    assert isinstance(first, ViewOf)
    assert first.base == second == FromGraph(0)
    assert len(first.steps) == 1


def test_results_without_one_that_shows_all_are_refused(library: Any) -> None:
    with pytest.raises(UnsupportedProgramError, match="AOT117"):
        trace_joint(_filled(lambda k: (k[0], k[:, 1])), [_x()], operators=library)
