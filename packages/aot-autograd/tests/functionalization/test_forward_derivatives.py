"""Derivatives in forward direction, from a captured graph to plain operators, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule, symbolic_trace

from aot_autograd import trace_joint
from aot_autograd.pipeline import compile_joint
from fx_interface.errors import UnsupportedProgramError
from fx_interface.regions import mapped, pushed

F64 = torch.float64


def pushing(function: Callable[..., Any], rows: bool = False, expanded: bool = False) -> GraphModule:
    """The change of the function's first result; ``rows``: for each slice of the change; ``expanded``: for one that is
    the same everywhere, in the memory of one number."""
    body = symbolic_trace(function)
    graph, root = Graph(), torch.nn.Module()
    x, change, w = (graph.placeholder(name) for name in ("x", "change", "w"))
    root.add_module("body", body)
    options = {"wrt": 1, "results": 1}
    if expanded:
        change = graph.call_method("expand", (graph.call_method("sum", (change,)), *(9,) * rows, 3, 3))
    if not rows:
        graph.output(graph.call_function(pushed, (graph.get_attr("body"), x, change, w), options))
        return GraphModule(root, graph)
    inner = Graph()
    part, fixed, factor = (inner.placeholder(name) for name in ("part", "fixed", "factor"))
    inner.output(inner.call_function(pushed, (inner.get_attr("body"), fixed, part, factor), options))
    held = torch.nn.Module()
    held.add_module("body", body)
    root.add_module("rows", GraphModule(held, inner))
    options = {"in_dims": (0,), "out_dims": (0, None)}
    graph.output(graph.call_function(mapped, (graph.get_attr("rows"), change, x, w), options))
    return GraphModule(root, graph)


FUNCTIONS: list[Callable[..., Any]] = [
    lambda x, w: ((x.sin() * w).exp(),),
    lambda x, w: (x.t().contiguous() @ w,),
    lambda x, w: ((w * 2).sum(),),
    lambda x, w: (torch.softmax(x, -1) * x.sum(0),),
    lambda x, w: (torch.where(x > 0.5, x, w).max(dim=0)[0],),
]


def given(rows: bool, trained: bool) -> list[torch.Tensor]:
    x = torch.linspace(0.1, 1, 9, dtype=F64).reshape(3, 3)
    change = torch.eye(9, dtype=F64).reshape(9, 3, 3) if rows else x.cos().t()
    return [x.clone().requires_grad_(trained), change, (x * 2).requires_grad_(trained)]


@pytest.mark.parametrize("trained", [True, False])
@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_values_and_gradients(
    function: Any, rows: bool, trained: bool, library: Any, interpreter: Any, same: Any, outcome: Any
) -> None:
    for expanded in (False, True):
        graph, inputs = pushing(function, rows, expanded), given(rows, trained)
        run = compile_joint(graph, inputs, operators=library, forward_compiler=interpreter)
        same(outcome(graph, tuple(given(rows, trained))), outcome(run, tuple(inputs)))


def test_the_graph_holds_plain_operators(library: Any) -> None:
    program = trace_joint(pushing(FUNCTIONS[0]), given(False, False), operators=library)
    names = {str(node.target) for node in program.forward.graph.nodes if node.op == "call_function"}
    assert "aten.cos.default" in names
    assert not any("same" in name or "dual" in name or "zerotensor" in name for name in names)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: (x * w,),
        lambda x, w: (x / w,),
        lambda x, w: (w / x,),
        lambda x, w: (x - w, x + w),
        lambda x, w: (torch.dot(x.view(-1), w.view(-1)),),
        lambda x, w: (torch.linalg.cross(x, w),),
        lambda x, w: ((x * 2).mul_(w),),
    ],
)
def test_what_does_not_change_is_zero_however_large_the_rest_is(
    function: Any, library: Any, interpreter: Any
) -> None:
    """The change of ``w`` is zeros that stay zeros when they are multiplied with infinity or NaN."""
    x = torch.tensor([[1e30, -2e19, 3.0], [torch.inf, torch.nan, -0.0], [1.0, -torch.inf, 0.5]])
    inputs = [x, torch.ones(3, 3), x.flip(0)]
    graph = pushing(function)
    run = compile_joint(graph, inputs, operators=library, forward_compiler=interpreter)
    for expected, found in zip(graph(*inputs), run(*inputs), strict=True):
        torch.testing.assert_close(found, expected, equal_nan=True)


def test_zeros_of_the_program_are_multiplied_as_any_numbers(library: Any, interpreter: Any) -> None:
    graph = pushing(lambda x, w: (x * w + torch.zeros(3, 3) * x,))
    inputs = [torch.full((3, 3), torch.inf), torch.ones(3, 3), torch.ones(3, 3)]
    run = compile_joint(graph, inputs, operators=library, forward_compiler=interpreter)
    torch.testing.assert_close(run(*inputs)[1], graph(*inputs)[1], equal_nan=True)
    assert run(*inputs)[1].isnan().all()


@pytest.mark.parametrize(
    "shown", [lambda x, w: (x.as_strided((2,), (1,)),), lambda x, w: (x.as_strided((2,), (3,)),)]
)
def test_strided_views_of_memory_with_gaps_are_refused(shown: Any, library: Any, interpreter: Any) -> None:
    """Torch copies the change into zeros of such memory, and shows a gap as a zero."""
    graph, memory = pushing(shown), torch.arange(9.0).reshape(3, 3)
    whole, column = [memory, memory.cos(), memory], [memory[:, 0], memory[:, 1], memory]
    run = compile_joint(graph, whole, operators=library, forward_compiler=interpreter)
    for expected, found in zip(graph(*whole), run(*whole), strict=True):
        assert torch.equal(found, expected)
    with pytest.raises(UnsupportedProgramError, match="AOT121"):
        compile_joint(graph, column, operators=library, forward_compiler=interpreter)
