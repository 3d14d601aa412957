"""What a program computes from numbers alone is known while it is traced; what follows from its inputs is not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule

from aot_autograd import compile_joint
from fx_interface.errors import UnsupportedProgramError


def compiled(function: Any, x: torch.Tensor, library: Any) -> Any:
    """What ``function`` gives, called by the graph as an operator that is composed of others is."""
    graph = Graph()
    graph.output((graph.call_function(function, (graph.placeholder("x"),)),))
    run = compile_joint(
        GraphModule(torch.nn.Module(), graph),
        [x],
        operators=library,
        forward_compiler=lambda module: module,
        backward_compiler=lambda module: module,
    )
    return run(x)[0]


def test_a_divisor_that_is_a_number_may_be_asked_about(library: Any) -> None:
    x = torch.randn(3, 5, dtype=torch.float64)
    torch.testing.assert_close(compiled(torch.cov, x, library), torch.cov(x), rtol=0, atol=0)


def test_a_number_made_a_tensor_is_still_a_number(library: Any) -> None:
    x = torch.randn(3)
    found = compiled(lambda x: x * (torch.full((), 2.0) + 1.0).item(), x, library)
    torch.testing.assert_close(found, x * 3.0, rtol=0, atol=0)


@pytest.mark.parametrize(
    "question",
    [
        lambda x: torch.equal(x, torch.zeros(3)),
        lambda x: torch.equal(torch.zeros(2000), torch.zeros(2000)),
        lambda x: torch.rand(()).item() > 0.5,
    ],
)
def test_what_follows_from_inputs_is_random_or_large_is_not_known(question: Any, library: Any) -> None:
    with pytest.raises(UnsupportedProgramError):
        compiled(lambda x: x if question(x) else -x, torch.randn(3), library)
