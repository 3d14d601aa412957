"""Backends are found through entry points of installed distributions, and checked before they are used."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fx_interface import (
    INTERFACE_VERSION,
    IncompatibleInterfaceError,
    PluginLoadError,
    UnknownBackendError,
    list_backends,
    load_backend,
    plugins,
)
from fx_interface.plugins import is_compatible, load_operator_library

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a distribution with one backend on the path, as an installation would."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(
        name: str, code: str, distribution: str = "plugin-for-tests", group: str = "fx_interface.backends"
    ) -> None:
        module = f"{distribution.replace('-', '_')}_module"
        (tmp_path / f"{module}.py").write_text(code)
        info = tmp_path / f"{distribution.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}:backend\n")
        monkeypatch.delitem(sys.modules, module, raising=False)

    return make


GOOD = f"""
def backend(graph_module, example_inputs):
    return graph_module

backend.interface_version = {INTERFACE_VERSION}
"""


def test_an_installed_backend_is_listed_and_loaded(install: Install) -> None:
    install("testing-good", GOOD)
    assert "testing-good" in {info.name for info in list_backends()}
    assert load_backend("testing-good")("graph", []) == "graph"  # type: ignore[arg-type]


def test_listing_imports_nothing(install: Install) -> None:
    install("testing-lazy", "raise RuntimeError('imported')")
    (info,) = [info for info in list_backends() if info.name == "testing-lazy"]
    assert (info.value, info.distribution) == ("plugin_for_tests_module:backend", "plugin-for-tests")


def test_an_unknown_name_lists_the_known(install: Install) -> None:
    install("testing-good", GOOD)
    with pytest.raises(UnknownBackendError, match=r"FXI202.*'nonsense'.*testing-good"):
        load_backend("nonsense")


def test_the_nearest_name_is_told(install: Install) -> None:
    install("testing-good", GOOD)
    with pytest.raises(UnknownBackendError, match="did you mean 'testing-good'"):
        load_backend("Testing-Goood")


@pytest.mark.parametrize("stated", ["(9, 3)", "None", "'0.1'", "(0, 99)", "(0,)"])
def test_another_version_names_both(install: Install, stated: str) -> None:
    install("testing-old", GOOD + f"backend.interface_version = {stated}\n")
    with pytest.raises(IncompatibleInterfaceError, match="FXI201") as caught:
        load_backend("testing-old")
    assert ".".join(map(str, INTERFACE_VERSION)) in str(caught.value)
    if stated == "(9, 3)":
        assert "9.3" in str(caught.value)
    assert "plugin-for-tests" in str(caught.value)


def test_a_backend_without_a_version_is_refused(install: Install) -> None:
    install("testing-none", "def backend(graph_module, example_inputs):\n    return graph_module\n")
    with pytest.raises(IncompatibleInterfaceError, match="FXI201"):
        load_backend("testing-none")


@pytest.mark.parametrize("code", ["raise RuntimeError('broken inside')", "", "backend = 5"])
def test_what_does_not_load_is_reported(install: Install, code: str) -> None:
    install("testing-broken", code)
    with pytest.raises(PluginLoadError, match="FXI203"):
        load_backend("testing-broken")


def test_two_distributions_cannot_claim_one_name(install: Install) -> None:
    install("testing-twice", GOOD)
    install("testing-twice", GOOD, "another-plugin")
    with pytest.raises(PluginLoadError, match=r"FXI204.*another-plugin.*plugin-for-tests"):
        load_backend("testing-twice")


def test_compatible_versions() -> None:
    major, minor = INTERFACE_VERSION
    assert is_compatible((major, minor))
    assert not is_compatible((major, minor + 1))
    assert not is_compatible((major + 1, 0))


RULES = """
class backend:
    @staticmethod
    def infer(op, args, kwargs, env):
        return args[0]
"""


@pytest.fixture
def operators_group(monkeypatch: pytest.MonkeyPatch) -> str:
    """A group that no installed distribution is in."""
    monkeypatch.setattr(plugins, "OPERATORS_GROUP", "fx_interface.operators_for_tests")
    return "fx_interface.operators_for_tests"


def test_an_installed_library_of_operators(install: Install, operators_group: str) -> None:
    assert load_operator_library() is None
    install("rules", RULES, group=operators_group)
    library = load_operator_library()
    assert library is not None
    assert library.infer(None, ["spec"], {}, None) == "spec"  # type: ignore[arg-type, list-item]


@pytest.mark.parametrize("code", ["raise RuntimeError('broken')", "backend = 3"])
def test_a_library_that_does_not_load(install: Install, operators_group: str, code: str) -> None:
    install("rules", code, group=operators_group)
    with pytest.raises(PluginLoadError, match="FXI203"):
        load_operator_library()


def test_two_libraries_of_operators(install: Install, operators_group: str) -> None:
    install("rules", RULES, group=operators_group)
    install("others", RULES, "another-plugin", group=operators_group)
    with pytest.raises(PluginLoadError, match="FXI204"):
        load_operator_library()
