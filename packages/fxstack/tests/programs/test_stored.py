from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

import fxstack
from fxstack.programs.keys import program_key
from fxstack.programs.stored import load_program
from inductor_codegen.cache import ArtifactStore


def _captured(function: Any, *args: Any, dynamic: bool | None = None) -> tuple[GraphModule, list[Any]]:
    kept: list[tuple[GraphModule, list[Any]]] = []

    def backend(graph_module: GraphModule, example_inputs: Any) -> Any:
        kept.append((graph_module, list(example_inputs)))
        return graph_module.forward

    fxstack.compile(function, backend=backend, dynamic=dynamic)(*args)
    fxstack.reset()
    (pair,) = kept
    return pair


def test_a_program_with_missing_parts_is_compiled_again(
    cache_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x.sin() * 3.0

    x = torch.randn(5)
    fxstack.compile(function)(x)
    key = program_key(*_captured(function, x))
    assert key is not None
    store = ArtifactStore(cache_dir)
    assert load_program(key, None, store) is not None
    found = store.get(key)
    assert found is not None
    store.put(key, {name: value for name, value in found.metadata.items() if name != "plan"})
    with caplog.at_level(logging.WARNING):
        assert load_program(key, None, store) is None
    assert "corrupt program" in caplog.text
    torch.testing.assert_close(fxstack.compile(function)(x), function(x))


def test_a_stored_program_is_data(cache_dir: Path) -> None:
    fxstack.compile(lambda x: x.exp() + 1.0)(torch.ones(3))
    texts = [path.read_text() for path in cache_dir.rglob("*.json")]
    assert texts
    assert all(isinstance(json.loads(text), dict | list) for text in texts)
