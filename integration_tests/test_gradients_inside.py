"""Programs that take gradients themselves, compiled as one graph each: trained for some steps as in eager."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import fxstack


def _residual(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    x = x.detach().requires_grad_(True)
    u = net(x)
    first = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    second = torch.autograd.grad(first[:, 0].sum(), x, create_graph=True)[0]
    return (second[:, 0] + u.squeeze(-1)).pow(2).mean()


def _penalty(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    between = (torch.rand(x.shape[0], 1) * x).requires_grad_(True)
    judged = net(between)
    found = torch.autograd.grad(judged, between, torch.ones_like(judged), create_graph=True)[0]
    return (found.norm(2, dim=1) - 1).square().mean() + F.softplus(-net(x)).mean()


def _inner_step(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    weights = dict(net.named_parameters())
    loss = torch.func.functional_call(net, weights, (x,)).square().sum()
    found = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
    moved = {name: w - 0.05 * g for (name, w), g in zip(weights.items(), found, strict=True)}
    return torch.func.functional_call(net, moved, (x + 1,)).square().mean()


def _pairs_apart(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """A contrastive loss: the diagonal of the similarities is filled in place, and the gradient's with zeros."""
    z = F.normalize(net(x) + x, dim=1)
    likeness = z @ z.t() / 0.5
    likeness.fill_diagonal_(-1e9)
    half = x.shape[0] // 2
    return F.cross_entropy(likeness, torch.cat([torch.arange(half) + half, torch.arange(half)]))


@pytest.mark.parametrize("loss", [_residual, _penalty, _inner_step, _pairs_apart])
def test_training_equals_eagers(loss: Any) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    twin = copy.deepcopy(net)
    compiled = fxstack.compile(loss, fullgraph=True)
    losses: list[list[float]] = []
    for model, function in ((net, loss), (twin, compiled)):
        torch.manual_seed(1)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        losses.append([])
        for _ in range(3):
            optimizer.zero_grad()
            value = function(model, torch.randn(6, 3))
            value.backward()
            optimizer.step()
            losses[-1].append(value.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    for one, other in zip(net.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("function", [torch.sin, torch.neg])
def test_a_backward_that_ends_in_a_leaf_made_inside_leaves_the_rest_to_a_later_one(function: Any) -> None:
    """It passes the compiled function's node without a gradient, whereupon autograd lets go of what that has saved."""

    def program(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        kept = function(x) * 1.5
        leaf = x.sin().detach().requires_grad_()
        (leaf * leaf).sum().backward()
        assert leaf.grad is not None
        return kept, leaf.grad * 2

    compiled = fxstack.compile(program, backend="aot_eager")
    for _ in range(2):
        found = []
        for call in (program, compiled):
            x = torch.arange(3.0, requires_grad=True)
            result, gradient = call(x)
            result.sum().backward()  # type: ignore[no-untyped-call]
            found.append((x.grad, gradient))
        for one, other in zip(*found, strict=True):
            assert one is not None
            assert other is not None
            assert torch.equal(one, other)


def test_what_an_earlier_graph_has_made_is_compiled_for_once() -> None:
    """Each result of a graph has a dictionary of hooks of its own, which is empty."""

    def program(x: torch.Tensor) -> torch.Tensor:
        a, b = x.sin(), x.cos()
        print(end="")
        return torch.autograd.grad(a.exp().sum(), a, create_graph=True)[0] * 2 + b

    compiled = fxstack.compile(program, backend="aot_eager")
    for _ in range(4):
        x = torch.ones(2, requires_grad=True)
        assert torch.equal(compiled(x), program(x))
    assert not fxstack.explain_recompiles(compiled).entries


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_second_derivative_through_a_break_behind_a_library_kernel(backend: str) -> None:
    """What the kernel made is made again, by the first graph, for the second one."""
    torch.manual_seed(0)
    layers = nn.Linear(3, 4), nn.Conv1d(1, 2, 3)

    def program(x: torch.Tensor) -> torch.Tensor:
        hidden = layers[0](x)
        print(end="")
        shown = layers[1](hidden[:, None].tanh())
        print(end="")
        return torch.fft.rfft(shown).abs()

    found = []
    for run in (program, fxstack.compile(program, backend=backend)):
        x = torch.linspace(-1, 1, 6).view(2, 3).requires_grad_()
        (first,) = torch.autograd.grad(run(x).sum(), x, create_graph=True)
        found.append([first, *torch.autograd.grad(first.square().sum(), [x, *layers[0].parameters()])])
    torch.testing.assert_close(found[1], found[0])
