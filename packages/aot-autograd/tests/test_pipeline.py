"""Compiled programs agree with eager: results, gradients, mutation, aliasing."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from aot_autograd import aot_module


def D(*sizes: int, grad: bool = True) -> torch.Tensor:
    return torch.randn(sizes, dtype=torch.float64).requires_grad_(grad)


def swap(a: torch.Tensor, b: torch.Tensor) -> None:
    old = a.clone()
    a.copy_(b)
    b.copy_(old)


def in_place_view(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y[0].add_(1)
    y[:, 1:].mul_(y[:, :-1].clone())
    y.t()[0].zero_()
    return y.sin() + y


def batch_norm(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, m: torch.Tensor, v: torch.Tensor
) -> torch.Tensor:
    return F.batch_norm(x, m, v, w, b, True)


def no_grad_region(x: torch.Tensor) -> Any:
    y = x.sin()
    with torch.no_grad():
        z = y * 2
        w = y[0]
    return y * z, z * 1, w.exp()


def slices_in_place(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    a, b = y[:, :2], y.narrow(1, 2, 2)
    c, d = y[:2], y[2:]
    y.add_(1)
    return a * b.sum() + c.sum() * d.mean()


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "pointwise": (lambda x, y: (x * y).sin() + x, (D(3, 4), D(4))),
    "linear": (lambda x, w, b: F.gelu(F.linear(x, w, b)), (D(2, 3, 4), D(5, 4), D(5))),
    "inference": (lambda x, y: x @ y, (D(3, 4, grad=False), D(4, 5, grad=False))),
    "several_outputs": (lambda x: (x.sin(), x.cos(), x.shape[0], None, 3.5), (D(3),)),
    "unused_input": (lambda x, y: x * 2, (D(3), D(3))),
    "integer_output": (lambda x: (x.argmax(-1), x.exp()), (D(3, 4),)),
    "detached_output": (lambda x: (x.exp(), x.exp().detach(), x.detach().sin()), (D(3),)),
    "output_is_input": (lambda x: (x, x * 2), (D(3),)),
    "output_is_view_of_input": (lambda x: (x.t(), x[0], x.unsqueeze(0).expand(2, 3, 4), x.sin()), (D(3, 4),)),
    "inference_view_of_input": (lambda x: (x.t(), x[0, 1:]), (D(3, 4, grad=False),)),
    "outputs_alias": (lambda x: ((y := x.exp()), y[0], y.t(), y.detach()), (D(3, 4),)),
    "outputs_alias_hidden_base": (lambda x: tuple(x.exp().chunk(2)), (D(4, 4),)),
    "same_output_twice": (lambda x: ((y := x.exp()), y), (D(3),)),
    "equal_outputs": (lambda x: (x.exp(), x.exp()), (D(3),)),
    "clone_output": (lambda x: (x.clone(), x.clone()), (D(3),)),
    "copy_output": (lambda x: torch.empty_like(x).copy_(x), (D(3),)),
    "mutate_input": (lambda x, y: (x.add_(y), x * 2)[1], (D(3, grad=False), D(3))),
    "mutate_input_inference": (lambda x, y: x.add_(y), (D(3, grad=False), D(3, grad=False))),
    "mutate_view_of_input": (lambda x, y: x[1:].mul_(y[1:]).sum(), (D(3, grad=False), D(3, grad=False))),
    "mutate_and_return_view": (lambda x: (x.add_(1), x[0], x.t())[1:], (D(3, 4, grad=False),)),
    "swap": (swap, (D(3, grad=False), D(3, grad=False))),
    "in_place_view": (in_place_view, (D(3, 4),)),
    "split_in_place": (
        lambda x: [p.mul_(i + 2) for i, p in enumerate(x.split(2, 1))] and x,
        (D(3, 4, grad=False),),
    ),
    "unbind_in_place": (
        lambda x: [p.mul_(i + 2) for i, p in enumerate(x.unbind(1))] and x,
        (D(3, 4, grad=False),),
    ),
    "slices_in_place": (slices_in_place, (D(4, 4),)),
    "batch_norm": (batch_norm, (D(4, 3, 5), D(3), D(3), D(3, grad=False), D(3, grad=False).exp().detach())),
    "no_grad_region": (no_grad_region, (D(3, 4),)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (4,), w, b), (D(3, 4), D(4), D(4))),
    "attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        (D(2, 2, 5, 4),) * 3,
    ),
    "cross_entropy": (lambda x: F.cross_entropy(x, torch.arange(3)), (D(3, 4),)),
    "embedding": (lambda i, w: F.embedding(i, w), (torch.tensor([[0, 2], [1, 2]]), D(4, 3))),
    "constant_tensor": (
        lambda x: x * torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64) + torch.tensor(2.0),
        (D(3),),
    ),
    "dropout": (lambda x: F.dropout(x, 0.5) * F.dropout(x, 0.5), (D(20),)),
    "random": (lambda x: x * torch.rand(3, dtype=torch.float64) + torch.randn_like(x), (D(3),)),
    "unused_random": (lambda x: (torch.rand(3), x * torch.rand(3, dtype=torch.float64))[1], (D(3),)),
    "convolution": (
        lambda x, w: F.max_pool2d(F.relu(F.conv2d(x, w, padding=1)), 2),
        (D(1, 2, 6, 6), D(3, 2, 3, 3)),
    ),
    "index_put": (lambda x, y: torch.index_put(x, (torch.tensor([0, 2]),), y), (D(4, 3), D(2, 3))),
    "setitem": (lambda x, y: (z := x * 1, z.__setitem__((slice(None), 0), y), z)[2], (D(4, 3), D(4))),
    "masked_fill": (lambda x: x.masked_fill(x > 0, 0.0).cumsum(0), (D(4, 3),)),
    "foreach": (lambda x, y: torch._foreach_mul([x, y], 2.0), (D(3), D(4))),
    "foreach_in_place": (lambda x, y: torch._foreach_add_([x, y], 2.0), (D(3, grad=False), D(4, grad=False))),
    "out": (lambda x: torch.add(x, 1, out=torch.empty(3, dtype=torch.float64)), (D(3, grad=False),)),
    "dtype_in_place": (lambda x: torch.zeros(3, dtype=torch.float32).add_(x), (D(3, grad=False),)),
    "transposed_in_place": (lambda x: (x * 2).t().add_(1), (D(3, 4),)),
    "where": (lambda x, y: torch.where(x > y, x, y).amax(0), (D(3, 4), D(3, 4))),
    "complex": (lambda x: torch.view_as_real(torch.fft.fft(x)), (D(8),)),
    "var_mean": (lambda x: torch.var_mean(x, -1), (D(3, 4),)),
    "topk": (lambda x: x.topk(2, -1), (D(3, 4),)),
    "lstm": (
        lambda x, *w: torch.lstm(x, (x.new_zeros(1, 2, 4),) * 2, w, True, 1, 0.0, True, False, False)[0],
        (D(5, 2, 3), D(16, 3), D(16, 4), D(16), D(16)),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_agrees_with_eager(name: str, check: Any) -> None:
    function, args = PROGRAMS[name]
    check(function, *args)


def test_second_call_uses_the_compiled_graphs(compiled: Any) -> None:
    calls = []

    def function(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x.sin()

    run = compiled(function)
    x, y = D(3), D(3)
    run(x)
    torch.testing.assert_close(run(y), y.sin(), rtol=0, atol=0)
    assert len(calls) == 1


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.1)
        self.norm = nn.BatchNorm1d(5)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = self.norm(self.layer(self.embed(tokens)))
        return F.cross_entropy(self.head(hidden).flatten(0, 1), tokens.flatten())


def test_a_module_trains_as_in_eager(library: Any, interpreter: Any) -> None:
    eager = Block().double()
    ours = copy.deepcopy(eager)
    run = aot_module(ours, operators=library, forward_compiler=interpreter)
    tokens = torch.randint(0, 11, (3, 5))
    optimizers = [torch.optim.SGD(m.parameters(), 0.1) for m in (eager, ours)]
    for step in range(3):
        losses = []
        for call, optimizer in zip((eager, run), optimizers, strict=True):
            torch.manual_seed(step)
            optimizer.zero_grad()
            loss = call(tokens)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        torch.testing.assert_close(losses[1], losses[0], rtol=1e-10, atol=1e-10)
    for (name, one), two in zip(eager.state_dict().items(), ours.state_dict().values(), strict=True):
        torch.testing.assert_close(two, one, rtol=1e-10, atol=1e-10, msg=name)
