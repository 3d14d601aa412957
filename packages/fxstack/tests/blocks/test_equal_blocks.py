"""Runs of equal blocks: which are found, and the graphs that are left of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.fx import GraphModule

import fx_interface
import fxstack
import fxstack.pipeline as pipeline
from fxstack.blocks.equal_blocks import equal_blocks, shortened

Captured = tuple[GraphModule, list[Any]]


def captured(monkeypatch: pytest.MonkeyPatch, f: Callable[..., Any], *args: Any) -> Captured:
    """The graph that a call is compiled from, and its inputs."""
    found: list[Captured] = []
    whole = pipeline._compile

    def asked(graph, examples, *rest):  # type: ignore[no-untyped-def]
        found.append((graph, list(examples)))
        return whole(graph, examples, *rest)

    monkeypatch.setattr(pipeline, "_compile", asked)
    fxstack.compile(f, fullgraph=True, options={"cache": False})(*args)
    (one,) = found
    return one


class Stack(nn.Module):
    """Layers of three calls, which add what is the same for all."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(layers))
        self.frozen: int | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shift = x.mean(0) * 0.5
        for number, layer in enumerate(self.layers):
            x = torch.tanh(layer(x)) + shift
            if number == self.frozen:
                x = torch.sin(x)
        return x.sum()


def test_layers_are_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, examples = captured(monkeypatch, Stack(9), torch.randn(2, 4))
    run = equal_blocks(graph, examples, 5)
    assert run is not None
    assert (run.length, run.inputs) == (3, 2)
    assert run.count >= 8
    assert equal_blocks(graph, examples, 10) is None


def test_a_short_graph_computes_with_the_layers_that_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = Stack(9), torch.randn(2, 4)
    graph, examples = captured(monkeypatch, model, x)
    run = equal_blocks(graph, examples, 5)
    assert run is not None
    for kept in (3, 4, 5):
        short, given = shortened(graph, examples, run, kept)
        fx_interface.verify(short)
        assert len(given) == len(examples) - 2 * (run.count - kept)
        fewer = Stack(9)
        fewer.load_state_dict(model.state_dict())
        last = 9 - (run.count - kept)
        held = [any(one is p for one in given) for p in [layer.weight for layer in model.layers]]  # type: ignore[misc]
        assert sum(held) == last
        fewer.layers = nn.ModuleList(
            layer for layer, is_held in zip(model.layers, held, strict=True) if is_held
        )
        assert torch.equal(short(*given)[0], fewer(x))


def _another_function() -> nn.Module:
    model = Stack(9)
    model.frozen = 4
    return model


def _tied() -> nn.Module:
    model = Stack(9)
    model.layers[6].weight = model.layers[2].weight
    return model


def _one_is_not_trained() -> nn.Module:
    model = Stack(9)
    model.layers[4].weight.requires_grad_(False)
    return model


def _one_is_a_view() -> nn.Module:
    model = Stack(9)
    memory = torch.randn(2, 4, 4)
    model.layers[3].weight = nn.Parameter(memory[0])
    model.layers[5].weight = nn.Parameter(memory[1])
    return model


def test_what_all_blocks_share_and_is_trained_is_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its gradient is a sum of as many terms as there are blocks."""
    x = torch.randn(2, 4, requires_grad=True)
    graph, examples = captured(monkeypatch, Stack(9), x)
    assert equal_blocks(graph, examples, 5) is None
    without = [example.detach() if example is x else example for example in examples]
    assert equal_blocks(graph, without, 5) is not None


class _AllResults(Stack):
    def forward(self, x: torch.Tensor) -> Any:
        results = []
        for layer in self.layers:
            x = torch.tanh(layer(x))
            results.append(x)
        return results


class _FarBack(Stack):
    """Each layer reads what the layer before the one before gave."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        oldest, older, x = x, x + 1, x + 2
        for layer in self.layers:
            oldest, older, x = older, x, torch.tanh(layer(x)) + oldest
        return x


@pytest.mark.parametrize(
    "build",
    [
        _another_function,
        _tied,
        _one_is_not_trained,
        _one_is_a_view,
        lambda: _AllResults(9),
        lambda: _FarBack(9),
    ],
    ids=["another function", "tied", "not trained", "views", "all results", "from far back"],
)
def test_what_is_no_run_of_equal_blocks(
    build: Callable[[], nn.Module], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, examples = captured(monkeypatch, build(), torch.randn(2, 4))
    run = equal_blocks(graph, examples, 7)
    assert run is None
