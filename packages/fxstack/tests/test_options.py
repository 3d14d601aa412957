from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import fxstack
from fxstack.options import MODES, OptionError, Options, check_mode, default_cache_dir


def test_the_environment_says_where_the_cache_lives(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FXSTACK_CACHE_DIR", str(tmp_path))
    assert default_cache_dir() == tmp_path
    monkeypatch.delenv("FXSTACK_CACHE_DIR")
    assert default_cache_dir().name == "fxstack"
    assert default_cache_dir() != tmp_path


def test_an_argument_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FXSTACK_CACHE_DIR", "elsewhere")
    monkeypatch.setenv("CXX", "from-environment")
    made = Options.make({"cache_dir": str(tmp_path), "compiler": "named"})
    assert made.cache_dir == tmp_path
    assert made.compiler == "named"
    assert Options.make(None).compiler == "from-environment"


def test_a_record_and_a_mapping_mean_the_same(tmp_path: Path) -> None:
    values = {"cache_dir": tmp_path, "cache": False, "verify": True}
    assert Options.make(values) == Options.make(Options(**values))  # type: ignore[arg-type]


def test_options_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Options().cache = False  # type: ignore[misc]


def test_unknown_names_and_values_are_refused_with_the_known() -> None:
    with pytest.raises(OptionError, match=r"(?s)FXS102.*'cach'.*cache_dir"):
        Options.make({"cach": True})
    with pytest.raises(OptionError, match=r"(?s)FXS103.*'ignore'.*'eager'"):
        Options.make({"on_missing_compiler": "ignore"})
    with pytest.raises(OptionError, match=r"(?s)FXS103.*'never'.*'raise'"):
        Options.make({"on_internal_error": "never"})
    with pytest.raises(OptionError, match=r"FXS103.*activation_budget is 2"):
        Options.make({"activation_budget": 2})
    with pytest.raises(OptionError, match=r"(?s)FXS101.*'fast'.*default"):
        check_mode("fast")
    assert [check_mode(mode) for mode in MODES] == list(MODES)


@pytest.mark.parametrize(
    "arguments",
    [
        {"options": {"cache_dir": 5}},
        {"options": {"cache": "no"}},
        {"options": {"verify": "no"}},
        {"options": {"compiler": ["g++"]}},
        {"options": {"activation_budget": "half"}},
        {"options": {"remote_cache": 3}},
        {"options": {"remote_cache_key": 3}},
        {"options": {"remote_cache_trusted": "false"}},
        {"options": "inductor"},
        {"options": ["cache"]},
        {"backend": 3},
        {"fullgraph": "no"},
        {"dynamic": "auto"},
        {"disable": "no"},
    ],
    ids=str,
)
def test_values_of_another_type_are_refused_at_once(arguments: dict[str, object]) -> None:
    """Not when they are used, where they would look like a defect of the compiler; ``"no"`` does not count as yes."""
    with pytest.raises(OptionError, match=r"(?s)FXS103.*to do: use "):
        fxstack.compile(abs, **arguments)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "name, value",
    [("FXSTACK_CHECK", "yes"), ("FXSTACK_DEBUG_KERNELS", "2"), ("FXSTACK_ON_INTERNAL_ERROR", "rais")],
)
def test_variables_of_the_environment_mean_something(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(OptionError, match=rf"(?s)FXS103\] \${name} is '{value}'.*use"):
        Options.make(None)


def test_refusals_are_runtime_errors() -> None:
    """As those of ``torch.compile`` are."""
    for unknown in ({"mode": "fast"}, {"options": {"cach": True}}, {"backend": "inducto"}):
        with pytest.raises(RuntimeError, match="FX"):
            fxstack.compile(abs, **unknown)  # type: ignore[call-overload]


def test_a_filter_of_guards_is_a_function() -> None:
    assert Options.make({"guard_filter_fn": list}).guard_filter_fn is list
    with pytest.raises(OptionError, match=r"FXS103.*guard_filter_fn"):
        Options.make({"guard_filter_fn": 3})


def test_modes_and_options_that_record_cuda_graphs() -> None:
    assert not Options.make(None).cuda_graphs
    assert not Options.make(None, "strict").cuda_graphs
    for asked in (
        Options.make(None, "reduce-overhead"),
        Options.make({"cuda_graphs": True}),
        Options.make({"triton.cudagraphs": True}),
        Options.make(Options(mode="reduce-overhead")),
    ):
        assert asked.cuda_graphs
        assert asked.mode == "default"
        assert Options.make(asked) == asked
    assert not Options.make({"triton.cudagraphs": False}).cuda_graphs
    assert Options.make({"cuda_graphs": "beside threads"}, "reduce-overhead").cuda_graphs == "beside threads"
    with pytest.raises(OptionError, match=r"(?s)FXS103.*'sometimes'.*'beside threads'"):
        Options.make({"cuda_graphs": "sometimes"})
