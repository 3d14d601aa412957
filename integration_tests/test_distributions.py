"""Distributions over batches of varying size: two versions at most, and eager's samples, gradients and stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import distributions

import fxstack

PROGRAMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "density": lambda x: distributions.Normal(x, x.exp()).log_prob(x + 1),
    "Poisson": lambda x: distributions.Poisson(x.exp()).sample(),
    "binomial": lambda x: distributions.Binomial(5, logits=x).sample(),
    "Gamma": lambda x: distributions.Gamma(x.exp(), 2 + x * x).rsample(),
    "Dirichlet": lambda x: distributions.Dirichlet(x.exp()).rsample(),
    "Beta": lambda x: distributions.Beta(x.exp(), x.exp()).rsample(),
    "divergence": lambda x: distributions.kl_divergence(
        distributions.Gamma(x.exp(), 1.0), distributions.Gamma(2.0, x.exp())
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_batches_of_other_sizes(name: str, backend: str) -> None:
    program = PROGRAMS[name]
    graphs: list[Any] = []

    def counted(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph

    compiled = fxstack.compile(program, backend=counted if backend == "eager" else backend)
    for size in (6, 7, 8, 9) if backend == "eager" else (6, 7):
        start = torch.randn(size, 4)
        outcomes: list[list[torch.Tensor]] = []
        for function in (program, compiled):
            x = start.clone().requires_grad_()
            torch.manual_seed(size)
            result = function(x)
            if result.requires_grad:
                result.sin().sum().backward()
            outcomes.append([result.detach(), *(() if x.grad is None else (x.grad,)), torch.rand(1)])
        for found, expected in zip(outcomes[1], outcomes[0], strict=True):
            torch.testing.assert_close(found, expected)
            assert found.stride() == expected.stride()
    assert len(graphs) == (2 if backend == "eager" else 0)
