"""When programs are made from those of short graphs, and which short graphs are compiled for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import nn
from torch.fx import GraphModule

import fxstack
import fxstack.pipeline as pipeline
from fx_interface.errors import UnsupportedProgramError
from fx_interface.events import listening
from fxstack.blocks import programs
from fxstack.blocks.programs import Planned, planned_by_blocks


class Stack(nn.Module):
    """Layers of three calls."""

    def __init__(self, layers: int, others: int = 0) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(layers))
        self.others = nn.ModuleList(nn.Linear(4, 4) for _ in range(others))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.tanh(layer(x)) * 0.5
        for layer in self.others:
            x = torch.sin(layer(x)) * 0.25
        return x.sum()


class _Stop(BaseException):
    """Nothing is to be compiled."""


def _asked(monkeypatch: pytest.MonkeyPatch, model: nn.Module, plan: Any) -> tuple[Planned | None, list[int]]:
    """What is planned by blocks, and how many calls of ``linear`` the graphs have that were planned for it."""
    made: list[Planned | None] = []
    linears: list[int] = []

    def counted(graph: GraphModule, examples: Sequence[Any]) -> Planned:
        linears.append(sum("linear" in node.name for node in graph.graph.nodes if node.op == "call_function"))
        return plan(graph, examples)  # type: ignore[no-any-return]

    def asked(graph: GraphModule, examples: Sequence[Any], *_: Any) -> Any:
        made.append(planned_by_blocks(graph, examples, counted))
        raise _Stop

    monkeypatch.setattr(pipeline, "_compile", asked)
    with pytest.raises(_Stop):
        fxstack.compile(model, options={"cache": False})(torch.randn(2, 4))
    return made[0], linears


def _never(graph: GraphModule, examples: Sequence[Any]) -> Planned:
    raise AssertionError("planned")


def _refuses(graph: GraphModule, examples: Sequence[Any]) -> Planned:
    raise UnsupportedProgramError("AOT101", "an operator")


def test_few_blocks_are_compiled_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _asked(monkeypatch, Stack(programs.WORTH - 1), _never) == (None, [])


def test_two_runs_are_compiled_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each short graph would have one of them whole."""
    assert _asked(monkeypatch, Stack(20, 20), _never) == (None, [])


def test_who_listens_hears_of_whole_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(lambda event: None):
        assert _asked(monkeypatch, Stack(20), _never) == (None, [])


def test_what_a_short_graph_is_refused_for_is_said_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    made, linears = _asked(monkeypatch, Stack(20), _refuses)
    assert made is None
    assert len(linears) == 1
    assert linears[0] < 6
