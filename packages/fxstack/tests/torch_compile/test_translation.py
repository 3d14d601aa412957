"""Modes and options of torch.compile: done, or taken with one warning, or refused with the nearest name."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

import fxstack
from fxstack.options import OptionError, Options
from fxstack.torch_compile.arguments import MODES
from fxstack.torch_compile.entry import DONE
from fxstack.torch_compile.option_families import FAMILIES


def _said(**arguments: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled = fxstack.compile(lambda x: x.sin() + 1.0, **arguments)
    x = torch.randn(3)
    torch.testing.assert_close(compiled(x), x.sin() + 1.0)
    assert all(issubclass(one.category, fxstack.OptionWarning) and one.filename == __file__ for one in caught)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("entry", MODES, ids=lambda entry: entry.name)
def test_every_mode_is_taken(entry: Any) -> None:
    said = _said(mode=entry.name)
    assert [entry.here in text for text in said] == ([] if entry.state == DONE else [True])


def test_no_mode_and_our_own() -> None:
    assert _said(mode=None) == []
    assert _said(mode="strict") == []
    assert Options.make(None, "strict").mode == "strict"
    assert Options.make({"mode": "strict"}, "default").mode == "strict"


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.title)
def test_every_option_is_taken_and_what_it_is_here_is_said_once(family: Any) -> None:
    asked = dict.fromkeys(family.names, True)
    said = _said(options=asked)
    assert len(said) == (0 if family.is_done else 1)
    assert all(family.here in text and all(repr(name) in text for name in family.names) for text in said)
    assert _said(options=dict.fromkeys(family.names, False)) == []


def test_options_that_are_ours_by_another_name() -> None:
    assert not Options.make({"fx_graph_cache": False}).cache
    assert Options.make({"cpp.cxx": "clang++"}).compiler == "clang++"
    assert Options.make({"cpp.cxx": (None, "g++")}).compiler == "g++"
    assert Options.make({"cpp.cxx": "clang++", "compiler": "g++"}).compiler == "g++"
    assert not Options.make({"fx-graph-cache": False}).cache


def test_caches_that_are_off_in_torchs_configuration_are_off() -> None:
    with torch.compiler.config.patch(force_disable_caches=True):  # type: ignore[attr-defined]
        assert not Options.make(None).cache
    assert Options.make(None).cache


@pytest.mark.parametrize(
    ("mode", "options", "code", "nearest"),
    [
        ("max_autotune", None, "FXS101", "max-autotune"),
        ("strct", None, "FXS101", "strict"),
        (None, {"max_autotun": True}, "FXS102", "max_autotune"),
        (None, {"triton.cudagraph": True}, "FXS102", "triton.cudagraphs"),
        (None, {"cache_dirr": "."}, "FXS102", "cache_dir"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(
    mode: str | None, options: Mapping[str, Any] | None, code: str, nearest: str
) -> None:
    with pytest.raises(OptionError, match=rf"(?s){code}.*did you mean '{nearest}'\?"):
        fxstack.compile(torch.sin, mode=mode, options=options)


def test_arguments_that_are_taken_with_a_warning_or_without() -> None:
    (text,) = _said(shapes_spec=object())
    assert "dynamic" in text
    assert _said(name="layer", isolate_recompiles=True, recompile_limit=3) == []


def test_a_name_is_what_profilers_show() -> None:
    compiled = fxstack.compile(lambda x: x.sin() + 1.0, name="the head")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        compiled(torch.ones(2))
    assert any(event.name.startswith("compiled the head (") for event in profile.events())


def test_disable_gives_back_what_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    model = torch.nn.Linear(2, 2)
    assert fxstack.compile(model, disable=True) is model
    assert fxstack.compile(disable=True)(torch.sin) is torch.sin
    for switch in ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE"):
        with monkeypatch.context() as changed:
            changed.setenv(switch, "1")
            assert fxstack.compile(model=model) is model
    assert fxstack.compile(model=model) is not model


def _given(**arguments: Any) -> dict[str, Any]:
    """What a backend of the user's own is called with."""
    seen: dict[str, Any] = {}

    def own(graph_module: torch.fx.GraphModule, example_inputs: Any, **keywords: Any) -> Any:
        seen.update(keywords)
        return graph_module.forward

    fxstack.compile(lambda x: x + 1.0, backend=own, **arguments)(torch.ones(2))
    return seen


def test_a_backend_of_the_users_own_is_given_modes_and_options_as_by_torch(tmp_path: Path) -> None:
    assert _given() == {}
    assert _given(mode="default") == {}
    assert _given(mode="max-autotune") == {"mode": "max-autotune"}
    assert _given(options={"level": 3}) == {"options": {"level": 3}}
    assert _given(options={"cache_dir": tmp_path, "level": 3}) == {"options": {"level": 3}}
