"""A captured graph with function transforms in it, captured once more."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dynamo_capture import optimize
from fx_interface.regions import REGIONS

SCALE = torch.tensor([1.0, -2.0, 0.5])


@pytest.mark.parametrize(
    "program",
    [
        lambda x: torch.vmap(lambda row: row * SCALE, 1, 1)(x),
        lambda x: torch.vmap(lambda row: row + torch.rand(()), randomness="different")(x),
        lambda x: torch.func.grad_and_value(lambda x: ((x * SCALE[0]).sin().sum(), x + 1), has_aux=True)(x),
        lambda x: torch.func.vjp(lambda x: (x.sin(), x * 2), x)[1]((x, x + 1)),
        lambda x: torch.func.jvp(lambda x: (x.sin(), SCALE * 2), (x,), (x,)),
        lambda x: torch.func.hessian(lambda x: x.sin().sum())(x),
    ],
    ids=["vmap", "draws", "grad", "vjp", "jvp", "hessian"],
)
def test_a_graph_is_captured_again(program: Any) -> None:
    first: list[Any] = []
    again: list[Any] = []

    def once_more(graph: Any, inputs: Any) -> Any:
        first.append(graph)
        return optimize(lambda graph, inputs: again.append(graph) or graph, fullgraph=True)(graph.forward)

    def calls(graph: Any) -> int:
        return sum(node.target in REGIONS for node in graph.graph.nodes)

    captured = optimize(once_more, fullgraph=True)(program)
    x = torch.randn(3, 3, requires_grad=True)
    outcomes: list[Any] = []
    gradients: list[torch.Tensor] = []
    for function in (program, captured):
        torch.manual_seed(0)
        results = torch.utils._pytree.tree_leaves(function(x))
        torch.manual_seed(0)
        (gradient,) = torch.autograd.grad(sum(one.sin().sum() for one in results), x)
        outcomes.append([(one.tolist(), one.stride(), one.requires_grad) for one in results])
        gradients.append(gradient)
    assert outcomes[0] == outcomes[1]
    torch.testing.assert_close(gradients[0], gradients[1])  # one graph may add its parts in another order
    assert len(first) == len(again) == 1
    assert calls(first[0]) == calls(again[0]) > 0
