"""Modules of many kinds, trained from an artifact: the compiling process's bits, eager's numbers, views and form."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.utils.checkpoint
from torch import nn

import fxstack


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.LSTM(8, 12, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.inner(x)[0]
        return found


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> Any:
        def inner(y: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cpu", torch.bfloat16):
                return self.b(self.a(y).tanh())

        return torch.utils.checkpoint.checkpoint(inner, x, use_reentrant=False)


class Average(nn.Module):
    """Writes to buffers without gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        with torch.no_grad():
            self.mean.mul_(0.9).add_(y.mean(0), alpha=0.1)
            self.count.add_(1)
        return y - self.mean


class Views(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(8, 6))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x @ self.w
        return y.view(-1, 3), y.t(), y[0], self.w, x, (y * 2).detach(), y.sum()


class Doubled(torch.autograd.Function):
    """A gradient of its own: twice the right one."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        made: torch.Tensor = gradient * x.exp() * 2
        return made


class OwnGradient(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> Any:
        return Doubled.apply(self.linear(x))


CASES: dict[str, Any] = {
    "encoder": lambda: (nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), torch.randn(2, 5, 16)),
    "lstm": lambda: (Recurrent(), torch.randn(2, 4, 8)),
    "convolution": lambda: (
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout2d(0.3)),
        torch.randn(2, 3, 12, 12),
    ),
    "embedding": lambda: (
        nn.Sequential(nn.Embedding(20, 8, padding_idx=1), nn.LayerNorm(8)),
        torch.randint(0, 20, (3, 4)),
    ),
    "checkpoint": lambda: (Checkpointed(), torch.randn(3, 8)),
    "average": lambda: (Average(), torch.randn(3, 8)),
    "views": lambda: (Views(), torch.randn(3, 8)),
    "own gradient": lambda: (OwnGradient(), torch.randn(3, 8)),
    "complex": lambda: (nn.Linear(4, 4, dtype=torch.complex64), torch.randn(3, 4, dtype=torch.complex64)),
}


def stepped(run: Any, module: nn.Module, x: torch.Tensor) -> tuple[list[Any], list[Any]]:
    """Results, gradients and buffers after two steps, and what is asked of results' form. ``x`` is no leaf."""
    for step in range(2):
        torch.manual_seed(step)
        leaf = x.clone().requires_grad_(x.is_floating_point() or x.is_complex())
        found = run(leaf * 1 if leaf.requires_grad else leaf)
        results = [found] if isinstance(found, torch.Tensor) else list(found)
        weighted = [y.abs() * torch.linspace(1, 2, y.numel()).reshape(y.shape) for y in results]
        sum(part.sum() for y, part in zip(results, weighted, strict=True) if y.requires_grad).backward()
    numbers = {name: p.grad for name, p in module.named_parameters()} | dict(module.named_buffers())
    form = [(y.requires_grad, y.stride(), y.shape, y._is_view()) for y in results]
    return [*(y.detach() for y in results), leaf.grad, *(numbers[name] for name in sorted(numbers))], form


@pytest.mark.parametrize("name", CASES)
def test_a_module_is_trained(tmp_path: Path, name: str) -> None:
    torch.manual_seed(0)
    model, x = CASES[name]()
    eager, compiled = copy.deepcopy(model), copy.deepcopy(model)
    example = x.clone().requires_grad_(x.is_floating_point() or x.is_complex())
    loaded = fxstack.load(fxstack.aot_compile(model, (example,), path=tmp_path / "m.fxa", training=True))
    ours, our_form = stepped(loaded, loaded, x)
    theirs, _ = stepped(fxstack.compile(compiled), compiled, x)
    eagers, eager_form = stepped(eager, eager, x)
    assert our_form == eager_form
    for ours_, theirs_, eagers_ in zip(ours, theirs, eagers, strict=True):
        if eagers_ is None:
            assert ours_ is None
        else:
            assert torch.equal(ours_, theirs_)
            torch.testing.assert_close(ours_, eagers_, rtol=1e-2 if name == "checkpoint" else 1e-4, atol=1e-4)
