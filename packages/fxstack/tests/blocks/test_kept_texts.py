"""The backward of many equal blocks is one for the gradients that usually arrive, and the text of the whole one is that
of the graph that is traced whole."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import fxstack
import fxstack.pipeline as pipeline
from fx_interface.graph import placeholders
from fxstack.blocks.extrapolation import NotRegular
from fxstack.blocks.kept_texts import longer_text
from fxstack.programs.stored import StoredProgram
from fxstack.programs.usual_backward import kept_text


class Model(nn.Module):
    """A loss and what it was computed from, behind many equal layers."""

    def __init__(self, layers: int = 20) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8)) for _ in range(layers))
        self.head = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        logits = self.head(x)
        return nn.functional.cross_entropy(logits, labels), logits


def gradients(run: Any, model: nn.Module, *, also: bool) -> list[torch.Tensor]:
    torch.manual_seed(1)
    x, labels = torch.randn(6, 8), torch.randint(0, 5, (6,))
    model.zero_grad()
    loss, logits = run(x, labels)
    (loss + logits.square().mean() if also else loss).backward()
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


def compiled(
    model: nn.Module, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> tuple[Any, list[StoredProgram]]:
    """The compiled model, and the programs that are made of it."""
    made: list[StoredProgram] = []
    compile_ = pipeline._compile

    def noted(*args: Any) -> StoredProgram:
        made.append(compile_(*args))
        return made[-1]

    monkeypatch.setattr(pipeline, "_compile", noted)
    return fxstack.compile(model, options=options), made


def nodes_of(text: bytes) -> list[Any]:
    """What a kept graph computes, without names."""
    data = json.loads(zlib.decompress(text))
    place: list[Any] = []
    for node in data["nodes"]:
        target = None if node["op"] == "placeholder" else node["target"]
        place.append([node["op"], target, node.get("args", []), node.get("kwargs", {}), node.get("spec")])
    return [place, [decl[1:] for decl in data["signature"]["inputs"]], data["signature"]["outputs"]]


def test_the_text_is_that_of_the_whole_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    run, made = compiled(model, monkeypatch, cache=False)
    gradients(run, model, also=False)
    with monkeypatch.context() as patched:
        patched.setattr(pipeline, "_by_blocks", lambda *_: None)
        fxstack.reset()
        run, made_whole = compiled(model, patched, cache=False)
        gradients(run, model, also=False)
    (by_blocks,), (whole,) = made[:1], made_whole
    assert by_blocks.plan.backward is not None
    assert by_blocks.plan.backward.absent == (1,)
    assert by_blocks.plan == whole.plan
    assert by_blocks.whole is not None
    assert whole.whole is not None
    assert nodes_of(by_blocks.whole) == nodes_of(whole.whole)
    graph = kept_text(by_blocks.whole)
    assert len(placeholders(graph.graph)) == len(placeholders(kept_text(whole.whole).graph))


@pytest.mark.parametrize("first", [False, True])
def test_gradients_are_eagers_whatever_is_differentiated(first: bool, tmp_path: Path) -> None:
    model, options = Model(), {"cache_dir": tmp_path}
    for _ in range(2):  # the second time out of the store
        run = fxstack.compile(model, options=options)
        for also in (first, not first, first):
            found, expected = (gradients(one, model, also=also) for one in (run, model))
            for one, other in zip(found, expected, strict=True):
                torch.testing.assert_close(one, other)
        fxstack.reset()


def test_texts_that_do_not_grow_by_a_round_are_refused() -> None:
    def text(*targets: str) -> bytes:
        nodes: list[Any] = [{"op": "placeholder", "name": "x", "target": "x"}]
        nodes += [
            {"op": "call_function", "name": f"y{n}", "target": target, "args": [{"node": n}]}
            for n, target in enumerate(targets)
        ]
        nodes.append(
            {"op": "output", "name": "output", "target": "output", "args": [[{"node": len(targets)}]]}
        )
        signature = {"inputs": [["x", "user", None, None]], "outputs": [["user", None]]}
        data = {"dialect": "aten", "nodes": nodes, "signature": signature, "shape_env": None, "blocks": {}}
        return zlib.compress(json.dumps(data).encode())

    longer = json.loads(zlib.decompress(longer_text(text("a", "a", "a"), text("a", "a", "a", "a"), 5)))
    assert [node.get("args") for node in longer["nodes"][1:-1]] == [[{"node": n}] for n in range(8)]
    assert longer["nodes"][-1]["args"] == [[{"node": 8}]]
    assert len({node["name"] for node in longer["nodes"]}) == len(longer["nodes"])
    with pytest.raises(NotRegular):
        longer_text(text("a", "a", "a"), text("a", "a", "a", "b"), 5)
