"""Programs made of a few of many equal blocks are those of the whole graph, and compute the same to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import fxstack
import fxstack.pipeline as pipeline
import inductor_codegen
from fx_interface.events import listening
from fxstack.blocks import programs
from fxstack.blocks.numbered import numbered_plan, numbered_program

WIDTH = 16
LAYERS = 12


class Layer(nn.Module):
    """Attention and two linear layers, normalisation first."""

    def __init__(self, dropout: float = 0.0, norm: Callable[[int], nn.Module] = nn.LayerNorm) -> None:
        super().__init__()
        self.first, self.second = norm(WIDTH), norm(WIDTH)
        self.project, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.dropout = dropout

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        batch, rows, _ = x.shape
        q, k, v = self.project(self.first(x)).view(batch, rows, 3, 2, WIDTH // 2).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).reshape(x.shape)
        x = x + nn.functional.dropout(self.out(mixed), self.dropout, self.training)
        return x + self.down(nn.functional.gelu(self.up(self.second(x))))


class Stack(nn.Module):
    """Layers between an embedding and a loss."""

    def __init__(self, layers: int = LAYERS, **facts: Any) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(11, WIDTH), nn.Linear(WIDTH, 11)
        self.layers = nn.ModuleList(Layer(**facts) for _ in range(layers))

    def forward(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        scores = self.head(x)
        return nn.functional.cross_entropy(scores.flatten(0, 1), ids.flatten()), scores


class _Masked(Stack):
    """All layers read one mask, and rows that are computed once."""

    def forward(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.embed(ids)
        mask = torch.ones(ids.shape[1], ids.shape[1], device=ids.device).tril().log()
        turned = torch.arange(ids.shape[1]).cos()[:, None]
        for layer in self.layers:
            x = layer(x * turned, mask)
        return self.head(x).square().mean(), x


class _Images(nn.Module):
    """Convolutions and batch normalisation, whose buffers each layer writes."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()) for _ in range(LAYERS)
        )

    def forward(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = ids[:, None, None, :].expand(-1, 4, 5, -1).float() / 11
        for layer in self.layers:
            x = x + layer(x)
        return x.square().mean(), x


class _Frozen(Stack):
    """What stands before the layers is not trained."""

    def __init__(self) -> None:
        super().__init__()
        self.embed.requires_grad_(False)


STACKS = {
    "plain": Stack,
    "dropout": lambda: Stack(dropout=0.2),
    "root mean square": lambda: Stack(norm=nn.RMSNorm),
    "masked": _Masked,
    "frozen": _Frozen,
    "images": _Images,
}


@pytest.fixture(autouse=True)
def _few_blocks_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "WORTH", 8)
    monkeypatch.setattr(programs, "SHARE", 1)
    monkeypatch.setattr(pipeline, "FEWEST_NODES", 0)


def _planned(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any]]:
    """What is planned by blocks (None where it is not) and what is planned of the whole, for each graph from now on."""
    found: list[tuple[Any, Any]] = []
    by_blocks = pipeline._by_blocks

    def asked(graph: Any, examples: Any, options: Any, choose: Any, usual: bool) -> Any:
        made = by_blocks(graph, examples, options, choose, usual)
        traced = pipeline.primitive_graphs(graph, examples, options, usual=usual)
        forward = inductor_codegen.plan(traced.forward, traced.layouts)
        backward = None
        if traced.backward is not None:
            backward = inductor_codegen.plan(traced.backward, traced.backward_layouts)
        found.append((made, programs.Planned(traced.plan, forward, backward)))
        return made

    monkeypatch.setattr(pipeline, "_by_blocks", asked)
    return found


def _numbered(planned: Any) -> tuple[Any, ...]:
    backward = None if planned.backward is None else numbered_program(planned.backward)
    return numbered_plan(planned.plan), numbered_program(planned.forward), backward


def _trained(model: nn.Module, ids: torch.Tensor) -> list[torch.Tensor]:
    """Results, gradients and buffers after a compiled step."""
    fxstack.reset()
    model.zero_grad()
    torch.manual_seed(5)
    loss, scores = fxstack.compile(model, fullgraph=True, options={"cache": False})(ids)
    (loss + scores.sin().mean()).backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    return [loss.detach(), scores.detach(), *gradients, *model.buffers()]


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("training", [True, False], ids=["training", "inference"])
def test_programs_are_those_of_the_whole(name: str, training: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found = _planned(monkeypatch)
    torch.manual_seed(3)
    model, ids = STACKS[name]().train(training), torch.randint(0, 11, (3, 5))
    with torch.set_grad_enabled(training):
        fxstack.compile(model, fullgraph=True, options={"cache": False})(ids)
    ((made, whole),) = found
    if name == "images":  # layouts are chosen for all convolutions together
        assert made is None
        return
    assert made is not None
    assert (made.backward is not None) == training
    assert _numbered(made) == _numbered(whole)


@pytest.mark.parametrize("name", ["dropout", "masked", "images"])
def test_results_are_the_same_to_the_last_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(3)
    model, ids = STACKS[name](), torch.randint(0, 11, (3, 5))
    state = {key: value.clone() for key, value in model.state_dict().items()}
    by_blocks = [value.clone() for value in _trained(model, ids)]
    model.load_state_dict(state)
    monkeypatch.setattr(programs, "WORTH", 1 << 60)
    whole = _trained(model, ids)
    assert len(by_blocks) == len(whole)
    for one, other in zip(by_blocks, whole, strict=True):
        assert torch.equal(one, other)


class _SharedBias(Stack):
    """One tensor is added in all layers: its gradient is a sum of as many as there are."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1, 1, WIDTH))

    def forward(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x + self.bias)
        return x.square().mean(), x


def test_what_does_not_repeat_is_compiled_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _planned(monkeypatch)
    torch.manual_seed(3)
    model, ids = _SharedBias(), torch.randint(0, 11, (3, 5))
    compiled = _trained(model, ids)
    ((made, _),) = found
    assert made is None
    model.zero_grad()
    loss, scores = model(ids)
    (loss + scores.sin().mean()).backward()
    eager = [loss, scores, *(p.grad for p in model.parameters() if p.grad is not None)]
    for one, other in zip(compiled, eager, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_who_listens_hears_of_the_whole_graph() -> None:
    graphs = []
    with listening(lambda event: graphs.append(event.facts["graph"]) if event.kind == "decompose" else None):
        _trained(Stack(), torch.randint(0, 11, (3, 5)))
    forward, *_ = graphs
    targets = [node.target for node in forward.graph.nodes if node.op == "call_function"]
    assert targets.count(torch.ops.aten.gelu.default) == LAYERS
