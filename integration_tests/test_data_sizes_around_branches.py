"""Sizes that only data tell, before, inside and behind a branch that data choose, with their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import fxstack


def before(x: torch.Tensor, choose: Callable[..., Any]) -> Any:
    kept = x[x > 0]
    made = choose(x.sum() > 0, lambda t: t.sin() * 2, lambda t: t.cos() + t.shape[0], (kept,))
    return made * 2, made.sum() + kept.shape[0], torch.zeros(kept.shape[0] * 2)


def inside(x: torch.Tensor, choose: Callable[..., Any]) -> Any:
    def on_true(t: torch.Tensor) -> torch.Tensor:
        large = t[t > 0.5]
        found: torch.Tensor = choose(
            t.sum() > 1, lambda t: t.sum().sin(), lambda t: t.sum() * t.shape[0], (large,)
        )
        return found

    return choose(x.sum() > 0, on_true, torch.sum, (x,)), x * 2


def number(x: torch.Tensor, choose: Callable[..., Any]) -> Any:
    count = int((x > 0).sum().item())
    return choose(x.sum() > 0, lambda t: t * count, lambda t: t.cos() + count, (x,)), count


def other_sizes(x: torch.Tensor, choose: Callable[..., Any]) -> Any:
    made, column = choose(
        x.sum() > 0, lambda t: (torch.cat([t, t]), t.view(-1, 1)), lambda t: (t[t < 0], t.view(1, -1)), (x,)
    )
    return choose(made.sum() > 1, torch.sin, torch.cos, (made,)), column.sum(0), made.shape[0]


def eager(
    condition: torch.Tensor, on_true: Callable[..., Any], on_false: Callable[..., Any], args: Any
) -> Any:
    return on_true(*args) if condition else on_false(*args)


def outcome(function: Callable[..., Any], x: torch.Tensor) -> tuple[Any, torch.Tensor]:
    given = x.clone().requires_grad_()
    result = function(given)
    tensors = [t for t in result if isinstance(t, torch.Tensor) and t.requires_grad]
    (gradient,) = torch.autograd.grad(torch.stack([t.sum() for t in tensors]).sum(), given)
    return result, gradient


@pytest.mark.parametrize("program", [before, inside, number, other_sizes])
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_sizes_from_data_around_branches(program: Any, backend: str) -> None:
    fast = fxstack.compile(lambda x: program(x, torch.cond), fullgraph=True, backend=backend)
    torch.manual_seed(0)
    for x in (torch.randn(7), torch.ones(4), -torch.ones(4), torch.tensor([2.0, -1.0]), torch.zeros(1)):
        torch.testing.assert_close(outcome(fast, x), outcome(lambda x: program(x, eager), x))
