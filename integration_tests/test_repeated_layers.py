"""Stacks of layers whose native code has loops compute what the same code without loops computes, to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import fxstack
import fxstack.pipeline  # its imports do not count as part of a compilation
from fx_interface.events import listening
from inductor_codegen.codegen.wrapper import repetition

WIDTH = 16
LOOP = "for (int64_t it = 0;"


class Layer(nn.Module):
    """Attention and two linear layers, normalisation first."""

    def __init__(self, inner: int = 2 * WIDTH, dropout: float = 0.0) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.project, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, inner), nn.Linear(inner, WIDTH)
        self.dropout = dropout

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, rows, _ = x.shape
        q, k, v = self.project(self.first(x)).view(batch, rows, 3, 2, WIDTH // 2).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)
        x = x + nn.functional.dropout(self.out(mixed), self.dropout, self.training)
        return x + self.down(nn.functional.gelu(self.up(self.second(x))))


class Stack(nn.Module):
    def __init__(
        self, layers: list[nn.Module], use: Callable[[int, nn.Module, torch.Tensor], Any] | None = None
    ):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.use = use

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for number, layer in enumerate(self.layers):
            x = layer(x) if self.use is None else self.use(number, layer, x)
        return x


class Activation(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x) * torch.sin(x)


def _plain() -> Stack:
    return Stack([Layer() for _ in range(6)])


def _one_is_of_another_kind() -> Stack:
    return Stack([*(Layer() for _ in range(4)), Activation(), *(Layer() for _ in range(4))])


def _one_is_of_another_size() -> Stack:
    return Stack([Layer(40 if number == 3 else 2 * WIDTH) for number in range(8)])


def _weights_are_shared() -> Stack:
    one, other = Layer(), Layer()
    return Stack([one, other] * 3)


class _InDoubles(nn.Module):
    """A layer that computes in another dtype."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = Layer().double()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x.double()).to(x.dtype)


def _one_is_of_another_dtype() -> Stack:
    return Stack([_InDoubles() if number == 3 else Layer() for number in range(8)])


def _one_has_another_constant() -> Stack:
    stack = Stack([Layer() for _ in range(8)])
    stack.layers[4].second.eps = 1e-2
    return stack


def _one_drops_more() -> Stack:
    return Stack([Layer(dropout=0.5 if number == 4 else 0.2) for number in range(8)])


def _a_weight_is_tied() -> Stack:
    stack = Stack([Layer() for _ in range(8)])
    stack.layers[5].up.weight = stack.layers[2].up.weight
    return stack


def _one_has_a_hook() -> Stack:
    stack = _plain()
    stack.layers[2].register_forward_hook(lambda module, args, result: result * 1.5)
    return stack


def _dropout() -> Stack:
    return Stack([Layer(dropout=0.2) for _ in range(6)])


def _scaled_by_number() -> Stack:
    return Stack([Layer() for _ in range(6)], lambda number, layer, x: layer(x) / (number + 1))


def _results_of_all() -> Stack:
    return Stack([Layer() for _ in range(6)], lambda number, layer, x: layer(x) + x.mean(0) * 0.5)


STACKS = [
    _plain,
    _one_is_of_another_kind,
    _one_is_of_another_size,
    _one_is_of_another_dtype,
    _one_has_another_constant,
    _one_drops_more,
    _a_weight_is_tied,
    _weights_are_shared,
    _one_has_a_hook,
    _dropout,
    _scaled_by_number,
    _results_of_all,
]


def trained(model: nn.Module, x: torch.Tensor) -> tuple[list[torch.Tensor], list[int]]:
    """Result and gradients of a compiled step, and the number of loops in each of its graphs."""
    entries: list[str] = []

    def asked(event: Any) -> None:
        if event.kind == "compile":
            entries.extend(unit.text for unit in event.facts["units"] if unit.name == "entry")

    model.zero_grad()
    x = x.clone().requires_grad_()
    torch.manual_seed(5)
    with listening(asked):
        result = fxstack.compile(model, fullgraph=True, options={"cache": False})(x)
    result.square().sum().backward()
    assert x.grad is not None
    found = [result.detach(), x.grad, *(p.grad for p in model.parameters() if p.grad is not None)]
    return found, [text.count(LOOP) for text in entries]


@pytest.mark.parametrize("build", STACKS, ids=lambda build: build.__name__.strip("_"))
def test_loops_change_no_bit(build: Callable[[], Stack], monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(3)
    model, x = build(), torch.randn(3, 5, WIDTH)
    looped, loops = trained(model, x)
    fxstack.reset()
    monkeypatch.setattr(repetition, "WORTH", 1 << 60)
    straight, none = trained(model, x)
    assert min(loops) > 0
    assert sum(none) == 0
    assert len(looped) == len(straight)
    for one, other in zip(looped, straight, strict=True):
        assert torch.equal(one, other)
    if build not in (_dropout, _one_drops_more):
        plain = x.clone().requires_grad_()
        torch.testing.assert_close(model(plain), looped[0], rtol=1e-4, atol=1e-5)


def test_layers_after_layers_make_rounds_and_nothing_else() -> None:
    """The text of the entries of 6 and of 12 layers is the same but for numbers."""
    texts = []
    for layers in (6, 12):
        entries: list[str] = []

        def asked(event: Any, into: list[str] = entries) -> None:
            if event.kind == "compile":
                into.extend(unit.text for unit in event.facts["units"] if unit.name == "entry")

        fxstack.reset()
        model = Stack([Layer() for _ in range(layers)])
        with listening(asked):
            fxstack.compile(model, options={"cache": False})(torch.randn(3, 5, WIDTH)).sum().backward()
        texts.append(
            [text[text.index("fx_steps(") : text.index("fx_wanted")].count("\n") for text in entries]
        )
    assert texts[0] == texts[1]
