from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

import fxstack
from fxstack.options import Options
from fxstack.programs import load_program, program_key
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


def test_a_key_is_the_programs_not_the_names() -> None:
    def one(x: torch.Tensor) -> torch.Tensor:
        first = x.sin()
        return first + 1.0

    def other(argument: torch.Tensor) -> torch.Tensor:
        return argument.sin() + 1.0

    def third(x: torch.Tensor) -> torch.Tensor:
        return x.sin() + 2.0

    x = torch.ones(3)
    keys = [program_key(*_captured(function, x)) for function in (one, other, third)]
    assert keys[0] is not None
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(torch.ones(4), id="size"),
        pytest.param(torch.ones(3, dtype=torch.float64), id="dtype"),
        pytest.param(torch.ones(3).requires_grad_(), id="requires_grad"),
        pytest.param(torch.ones(6)[::2], id="stride"),
    ],
)
def test_a_key_depends_on_the_inputs(other: torch.Tensor) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    assert program_key(*_captured(function, torch.ones(3))) != program_key(*_captured(function, other))


def test_a_key_depends_on_torchs_state() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    graph_module, inputs = _captured(function, torch.ones(3))
    before = program_key(graph_module, inputs)
    with torch.no_grad():
        assert program_key(graph_module, inputs) != before
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert program_key(graph_module, inputs) != before
    assert program_key(graph_module, inputs) == before


def test_a_key_depends_on_what_the_user_chose() -> None:
    captured = _captured(lambda x: x.sin(), torch.ones(3))
    chosen = (
        None,
        *(Options(**o) for o in ({"mode": "strict"}, {"rng": "counter"}, {"activation_budget": 1.0})),
    )
    assert len({program_key(*captured, options) for options in chosen}) == 4
    assert program_key(*captured) == program_key(*captured, Options(verify=True))


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
