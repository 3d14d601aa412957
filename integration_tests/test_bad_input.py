"""Bad input gets a clear error with a code, and nothing of the user's is lost or left half-changed."""

from __future__ import annotations

import logging
import traceback
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
import torch

import fx_interface.plugins
import fxstack
from fx_interface.errors import IncompatibleInterfaceError, StackError, UnknownBackendError
from fx_interface.events import listening


def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2.0 + 1.0


def halve(x: torch.Tensor) -> torch.Tensor:
    return x * 0.5


def test_unknown_backend_lists_the_known() -> None:
    with pytest.raises(UnknownBackendError) as caught:
        fxstack.compile(double, backend="inducter")
    text = str(caught.value)
    assert "FXI202" in text
    assert all(name in text for name in ("inducter", "eager", "aot_eager", "inductor"))


def test_unknown_mode_and_option_list_the_known() -> None:
    with pytest.raises(StackError, match="FXS101"):
        fxstack.compile(double, mode="fastest")
    with pytest.raises(StackError, match=r"(?s)FXS102.*cache_dir"):
        fxstack.compile(double, options={"cash_dir": "x"})


class _FutureBackend:
    interface_version = (99, 0)

    def __call__(self, graph_module: Any, example_inputs: Any) -> Any:
        raise AssertionError("never called")


future_backend = _FutureBackend()


def test_incompatible_plugin_names_both_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("future", f"{__name__}:future_backend", fx_interface.plugins.ENTRY_POINT_GROUP)
    monkeypatch.setattr(EntryPoint, "load", lambda self: future_backend)
    monkeypatch.setattr(fx_interface.plugins, "entry_points", lambda **_: [entry])
    with pytest.raises(IncompatibleInterfaceError) as caught:
        fxstack.compile(double, backend="future")
    assert "99.0" in str(caught.value)
    assert ".".join(map(str, fx_interface.INTERFACE_VERSION)) in str(caught.value)


def _without_compiler(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CXX", raising=False)


def test_missing_compiler_says_how_to_install_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _without_compiler(monkeypatch, tmp_path)
    compiled = fxstack.compile(double, options={"cache_dir": tmp_path})
    with pytest.raises(StackError) as caught:
        compiled(torch.ones(3))
    assert "IND111" in str(caught.value)
    assert "install" in str(caught.value)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [frame.name for frame in frames[:1]] == ["test_missing_compiler_says_how_to_install_one"]
    assert len(frames) <= 2  # none of the layers that compile


def test_without_a_compiler_nothing_is_traced_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _without_compiler(monkeypatch, tmp_path)
    kinds: list[str] = []
    with listening(lambda event: kinds.append(event.kind)), pytest.raises(StackError, match="IND111"):
        fxstack.compile(double, options={"cache_dir": tmp_path})(torch.ones(3))
    assert "graph" in kinds
    assert not {"joint", "decompose", "lower", "kernels"} & set(kinds)


def test_missing_compiler_runs_eagerly_where_allowed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _without_compiler(monkeypatch, tmp_path)
    compiled = fxstack.compile(double, options={"cache_dir": tmp_path, "on_missing_compiler": "eager"})
    with caplog.at_level(logging.WARNING):
        assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 3.0))
        again = fxstack.compile(halve, options={"cache_dir": tmp_path, "on_missing_compiler": "eager"})
        assert torch.equal(again(torch.ones(3)), torch.full((3,), 0.5))
    assert sum("no C++ compiler" in record.message for record in caplog.records) == 1  # for all graphs


class OwnError(Exception):
    """An exception of the user's."""


def test_the_users_exception_is_unchanged() -> None:
    def raises(x: torch.Tensor, seen: list[float]) -> torch.Tensor:
        y = x + 1.0
        seen.append(1.0)
        if len(seen) > 1:
            raise OwnError("mine", len(seen))
        return y

    compiled = fxstack.compile(raises)
    seen: list[float] = []
    compiled(torch.ones(2), seen)
    assert seen == [1.0]
    with pytest.raises(OwnError) as caught:
        compiled(torch.ones(2), seen)
    assert caught.value.args == ("mine", 2)
    assert seen == [1.0, 1.0]
    traceback = caught.tb
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    assert traceback.tb_frame.f_code.co_name == "raises"


def test_an_operators_error_is_eagers() -> None:
    compiled = fxstack.compile(lambda x, y: x @ y)
    with pytest.raises(RuntimeError) as expected:
        torch.ones(2, 3) @ torch.ones(4, 5)
    with pytest.raises(RuntimeError) as found:
        compiled(torch.ones(2, 3), torch.ones(4, 5))
    assert str(found.value) == str(expected.value)


def test_a_corrupt_cache_entry_is_recompiled_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    x = torch.randn(5)
    assert torch.allclose(fxstack.compile(double, options={"cache_dir": tmp_path})(x), double(x))
    damaged = 0
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.suffix in (".so", ".json"):
            # a new file: the library that this process has loaded must not change under it
            content = path.read_bytes()
            path.unlink()
            path.write_bytes(content[: len(content) // 2])
            damaged += 1
    assert damaged
    fxstack.reset()
    with caplog.at_level(logging.WARNING):
        assert torch.allclose(fxstack.compile(double, options={"cache_dir": tmp_path})(x), double(x))
    assert any("corrupt" in record.message.lower() for record in caplog.records)
