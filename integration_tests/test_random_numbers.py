"""Random numbers: compiled programs draw eager's under the same seed, forward and backward, whatever is recomputed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import fxstack

PROGRAMS: dict[str, Callable[[Tensor], Tensor]] = {
    "dropout": lambda x: F.dropout(x, 0.3).exp() * F.dropout(x * 2, 0.5),
    "feature dropout": lambda x: F.dropout1d(x.view(2, 8, -1), 0.5).flatten(1) + x.view(2, -1),
    "alpha dropout": lambda x: F.alpha_dropout(x, 0.2).tanh(),
    "rand_like": lambda x: torch.rand_like(x) * x.sin(),
    "randn": lambda x: torch.randn(x.shape[0]).unsqueeze(1) * x.square(),
    "randn_like": lambda x: (x * torch.randn_like(x)).relu(),
    "randint": lambda x: x * torch.randint(0, 9, (x.shape[-1],)),
    "bernoulli": lambda x: x.exp() * torch.bernoulli(torch.full_like(x, 0.4)),
    "bernoulli_": lambda x: x.exp() * torch.empty_like(x).bernoulli_(0.4),
    "normal": lambda x: torch.normal(0.0, 2.0, (x.shape[-1],)) * x.cos(),
    "normal_": lambda x: torch.empty_like(x).normal_(1, 2) * x.cos(),
    "uniform_": lambda x: torch.empty_like(x).uniform_(-1, 1) * x.cos(),
    "exponential_": lambda x: torch.empty_like(x).exponential_() * x.cos(),
    "randperm": lambda x: x.sin()[torch.randperm(x.shape[0])] * x,
    "multinomial": lambda x: x.sin()[torch.multinomial(x.detach().abs() + 0.1, 1).flatten() % 4] * x,
    "rrelu": lambda x: F.rrelu(x * 3, training=True).sum(-1),
    "gumbel": lambda x: F.gumbel_softmax(x, hard=True) * x,
    "attention": lambda x: F.scaled_dot_product_attention(
        x[None, None], x[None, None], x[None, None], dropout_p=0.2
    ),
    "between what is computed together": lambda x: (
        F.dropout(torch.arange(16.0).sin()) * F.dropout(x * 2) * F.dropout(torch.arange(16.0).sin().cos())
    ),
    "only the stream": lambda x: (torch.rand(3), x.exp())[1],
}


def _run(function: Callable[[Tensor], Tensor]) -> tuple[Any, ...]:
    x = torch.linspace(-2, 2, 16 * 16).view(16, 16).requires_grad_()
    found: list[Tensor] = []
    torch.manual_seed(7)
    for _ in range(2):
        result = function(x)
        found += [result, *torch.autograd.grad(result.sum(), x)]
    return (*found, torch.rand(2))


@pytest.mark.parametrize("budget", [None, 1.0, 0.0], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_stream_is_eagers(name: str, budget: float | None) -> None:
    program = PROGRAMS[name]

    def function(x: Tensor) -> Tensor:
        return program(x)

    expected = _run(function)
    found = _run(fxstack.compile(function, options={"activation_budget": budget}))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_a_model_with_dropout_trains_as_in_eager() -> None:
    def losses(compiled: bool) -> list[float]:
        torch.manual_seed(3)
        model: nn.Module = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.2, batch_first=True)
        run = fxstack.compile(model, options={"activation_budget": 0.5}) if compiled else model
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        x, found = torch.randn(3, 5, 16), []
        for _ in range(4):
            optimizer.zero_grad()
            loss = run(x).square().mean()
            loss.backward()
            optimizer.step()
            found.append(float(loss.detach()))
        return found

    assert losses(True) == pytest.approx(losses(False), rel=1e-5)


def test_a_generator_of_ones_own_is_drawn_from() -> None:
    def function(x: Tensor, generator: torch.Generator) -> Tensor:
        return x * torch.rand(x.shape, generator=generator)

    def run(function: Any) -> Tensor:
        generator = torch.Generator().manual_seed(5)
        result: Tensor = function(torch.ones(4), generator) + function(torch.ones(4), generator)
        return result

    assert torch.equal(run(fxstack.compile(function)), run(function))
