"""Checkpoints and autograd functions through the whole stack: values, gradients, memory, storage, sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd import Function
from torch.utils.checkpoint import checkpoint

import fxstack
from dynamo_capture import export, optimize
from fx_interface import canonical_hash, from_json, to_json, verify


class Silu(Function):
    """Keeps its input only, as memory-saving activations do."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad * (s * (1 + x * (1 - s)))


class Clipped(Function):
    """A gradient that is not the derivative, written in place, with a number and a mask."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, limit: float) -> tuple[torch.Tensor, torch.Tensor]:
        mask = x.abs() < limit
        ctx.mark_non_differentiable(mask)
        ctx.save_for_backward(mask)
        ctx.limit = limit
        return x.clamp(-limit, limit), mask

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor, _: torch.Tensor) -> tuple[torch.Tensor, None]:
        (mask,) = ctx.saved_tensors
        grad = grad.clone()
        grad[~mask] = ctx.limit
        return grad, None


class Block(nn.Module):
    """A layer with a function of its own and dropout."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = Silu.apply(self.up(self.norm(x)))
        kept, mask = Clipped.apply(self.down(hidden), 0.9)
        return x + self.dropout(kept) * mask


class Net(nn.Module):
    """Layers that are recomputed or not."""

    def __init__(self, recompute: bool | None, reentrant: bool = False, width: int = 16) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(Block(width) for _ in range(3))
        self.recompute, self.reentrant = recompute, reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=self.reentrant) if self.recompute else layer(x)
        return x


def trained(net: nn.Module, run: Callable[..., Any], x: torch.Tensor) -> list[torch.Tensor]:
    torch.manual_seed(4)
    net.zero_grad()
    given = x.clone().requires_grad_()
    y = run(given)
    y.square().mean().backward()
    gradients = [p.grad.clone() for p in net.parameters() if p.grad is not None]
    assert given.grad is not None
    return [y.detach(), given.grad, *gradients, torch.rand(2)]


@pytest.mark.parametrize(
    ("backend", "budget"), [("inductor", None), ("inductor", 0.5), ("aot_eager", None), ("eager", None)]
)
@pytest.mark.parametrize("form", [(False, False), (True, False), (True, True)])
def test_training_equals_eager(form: tuple[bool, bool], backend: str, budget: float | None) -> None:
    net = Net(*form)
    fast = fxstack.compile(net, backend=backend, fullgraph=True, options={"activation_budget": budget})
    x = torch.randn(8, 16)
    for _ in range(2):
        for expected, actual in zip(trained(net, net, x), trained(net, fast, x), strict=True):
            torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-6)


def test_recomputation_frees_memory() -> None:
    kept: list[int] = []
    for recompute in (False, True):
        net = Net(recompute, width=32)
        mine = {p.untyped_storage().data_ptr() for p in net.parameters()}
        found: dict[int, int] = {}

        def keep(tensor: torch.Tensor, mine: set[int] = mine, found: dict[int, int] = found) -> torch.Tensor:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in mine:
                found[storage.data_ptr()] = storage.nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            y = fxstack.compile(net, fullgraph=True)(torch.randn(64, 32, requires_grad=True))
        y.sum().backward()
        kept.append(sum(found.values()))
    assert kept[1] < kept[0] / 3, kept


def test_sizes_that_differ_are_compiled_twice() -> None:
    net = Net(True)
    fast = optimize(fxstack.backends.inductor, operators=_library())(net.forward)
    for rows in (3, 5, 7, 9):
        x = torch.randn(rows, 16)
        for expected, actual in zip(trained(net, net, x), trained(net, fast, x), strict=True):
            torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-6)
    assert len(fast.__fxstack_capture__.report.replacements) == 2


def _library() -> Any:
    from primtorch_decomps import LIBRARY

    return LIBRARY


def test_a_second_process_would_find_the_program_stored(cache_dir: Any) -> None:
    """The store is asked by the graph's hash, which regions are part of."""
    x = torch.randn(8, 16)
    results = []
    for _ in range(2):
        net = Net(True)
        results.append(trained(net, fxstack.compile(net, fullgraph=True), x))
    assert all(map(torch.equal, *results))


def test_an_exported_graph_is_stored_and_runs_as_it_is() -> None:
    x = torch.randn(8, 16)
    net = Net(True)
    graph = export(net.forward)(x).graph_module
    verify(graph)
    again = from_json(to_json(graph))
    assert canonical_hash(again) == canonical_hash(graph)
    other = export(Net(False).forward)(x).graph_module
    assert canonical_hash(other) != canonical_hash(graph)
    parameters = dict(net.named_parameters())
    names = [decl.source.expression for decl in graph.meta["signature"].inputs]
    inputs = [x if name == "x" else parameters[_path(name)] for name in names]
    torch.manual_seed(4)
    (found,) = again(*inputs)
    torch.manual_seed(4)
    torch.testing.assert_close(found, net(x))


def _path(expression: str) -> str:
    """``self.layers[0].norm.weight`` as ``named_parameters`` spells it."""
    parts = expression.replace("]", "").replace("[", ".").replace("'", "").split(".")
    skipped = ("self", "_modules", "_parameters", "__dict__")
    return ".".join(part for part in parts if part not in skipped)


@pytest.mark.parametrize("reentrant", [True, False])
def test_gradient_checkpointing_of_transformers_is_one_graph(reentrant: bool) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
        intermediate_size=64, vocab_size=50, use_cache=False,
    )  # fmt: skip
    net = transformers.LlamaForCausalLM(config).train()
    net.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": reentrant})
    ids = torch.randint(0, 50, (2, 9))

    def losses(run: Callable[..., Any]) -> list[torch.Tensor]:
        net.zero_grad()
        loss = run(input_ids=ids, labels=ids).loss
        loss.backward()
        return [loss.detach(), *[p.grad.clone() for p in net.parameters() if p.grad is not None]]

    for expected, actual in zip(losses(net), losses(fxstack.compile(net, fullgraph=True)), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-6)


def test_second_derivatives_use_the_users_backward() -> None:
    def penalty(run: Callable[..., Any]) -> torch.Tensor:
        x = torch.linspace(-1, 1, 6, dtype=torch.float64, requires_grad=True)
        (first,) = torch.autograd.grad(run(x).sum(), x, create_graph=True)
        return torch.autograd.grad(first.square().sum(), x)[0]

    def f(x: torch.Tensor) -> torch.Tensor:
        return checkpoint(lambda x: Silu.apply(x * 2).sin(), x, use_reentrant=False) * x

    torch.testing.assert_close(penalty(fxstack.compile(f, fullgraph=True)), penalty(f))
