from __future__ import annotations

import logging
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

import fxstack
from fx_interface.errors import StackError
from fx_interface.events import listening
from inductor_codegen import compile as stages


def _function(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x * 2.0, dim=-1) + 1.0


def _stored(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*.so")}


def test_a_second_compilation_makes_no_new_library(cache_dir: Path) -> None:
    x = torch.randn(4, 8)
    expected = _function(x)
    torch.testing.assert_close(fxstack.compile(_function)(x), expected)
    first = _stored(cache_dir)
    assert first
    fxstack.reset()
    torch.testing.assert_close(fxstack.compile(_function)(x), expected)
    assert _stored(cache_dir) == first


def test_kernels_are_named_by_the_lines_of_each_function_that_computes_the_same(cache_dir: Path) -> None:
    def one(x: torch.Tensor) -> torch.Tensor:
        return x.tanh() + 1

    def another(x: torch.Tensor) -> torch.Tensor:
        return x.tanh() + 1

    x = torch.randn(4, 8)
    for function in (one, another):
        compiled = fxstack.compile(function, options={"debug_kernels": True})
        torch.testing.assert_close(compiled(x), function(x))
    named = "".join(path.read_text() for path in cache_dir.rglob("kernels0.cpp"))
    for function in (one, another):
        line = function.__code__.co_firstlineno + 1
        assert f"test_pipeline_py_{line}_{function.__name__}__" in named


def test_a_stored_program_needs_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    x = torch.randn(4, 8)
    fxstack.compile(_function)(x)
    fxstack.reset()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    torch.testing.assert_close(fxstack.compile(_function)(x), _function(x))
    with pytest.raises(StackError, match="IND111"):
        fxstack.compile(lambda x: x.cos() - 5.0)(x)


def test_without_the_cache_nothing_is_kept(cache_dir: Path) -> None:
    x = torch.randn(4, 8)
    compiled = fxstack.compile(_function, options={"cache": False})
    torch.testing.assert_close(compiled(x), _function(x))
    assert not _stored(cache_dir)


def test_a_folder_that_cannot_be_made_is_an_error_or_logged_but_the_result_is_right(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    x = torch.randn(3)
    with caplog.at_level(logging.WARNING):
        found = fxstack.compile(_function, options={"cache_dir": blocked})(x)
    torch.testing.assert_close(found, _function(x))


def test_every_graph_is_verified_where_asked(cache_dir: Path) -> None:
    x = torch.randn(4, 8, requires_grad=True)
    fxstack.compile(_function, options={"verify": True})(x).sum().backward()
    found, x.grad = x.grad, None
    _function(x).sum().backward()
    torch.testing.assert_close(found, x.grad)


@pytest.mark.parametrize("width", [1, 3])
def test_a_part_of_a_computed_tensor_is_saved_with_its_strides(width: int) -> None:
    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        first, second = torch.flip(x, [1]).split([width, width], dim=1)
        return torch.nn.functional.conv1d(first, w).sum() + second.sum()

    x = torch.randn(4, 2 * width, 7, requires_grad=True)
    w = torch.randn(3, width, 1, requires_grad=True)
    expected = torch.autograd.grad(function(x, w), [x, w])
    found = torch.autograd.grad(fxstack.compile(function)(x, w), [x, w])
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("budget", [None, 1.0, 0.3, 0.0])
def test_gradients_are_the_same_under_every_activation_budget(budget: float | None) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(16, 32), torch.nn.LayerNorm(32), torch.nn.GELU(), torch.nn.Linear(32, 4)
    )
    x = torch.randn(8, 16)
    expected = torch.autograd.grad(model(x).square().sum(), list(model.parameters()))
    compiled = fxstack.compile(model, fullgraph=True, options={"activation_budget": budget})
    for _ in range(2):
        found = torch.autograd.grad(compiled(x).square().sum(), list(model.parameters()))
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_complex_numbers_inside_do_not_stop_compilation(caplog: pytest.LogCaptureFixture) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.fft.fft(x.to(torch.complex64) * 2j).real + x

    x = torch.randn(3, 8)
    with caplog.at_level(logging.WARNING):
        torch.testing.assert_close(fxstack.compile(function, fullgraph=True)(x), function(x))
    assert not caplog.records


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x: torch.cat([x]), id="cat"),
        pytest.param(lambda x: x.sum(1, keepdim=True), id="sum"),
        pytest.param(lambda x: x.expand(2, 1, 3), id="expand"),
        pytest.param(lambda x: x.contiguous(), id="contiguous"),
    ],
)
def test_a_first_operator_that_changes_no_value_has_eagers_strides(function: Any) -> None:
    x = torch.empty_strided((2, 1, 3), (3, 9, 1)).normal_()
    found, expected = fxstack.compile(function)(x), function(x)
    assert torch.equal(found, expected)
    assert found.stride() == expected.stride()


def test_two_inputs_that_only_change_strides_stay_two() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        nothing = torch.tensor([])
        return torch.cat([nothing, x], dim=-2), torch.cat([nothing, y], dim=-2)

    x, y = torch.randn(3, 2, 4).transpose(0, 1), torch.randn(3, 2, 4).transpose(0, 1)
    for found, expected in zip(fxstack.compile(function)(x, y), function(x, y), strict=True):
        assert torch.equal(found, expected)


def test_a_program_with_branches_is_stored_in_parts(cache_dir: Path) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        y = torch.cond(x.sum() > 0, lambda t: t.sin() * 2, lambda t: t.cos() + 1, (x * 2,))
        return y.exp()

    given = [torch.ones(4), -torch.ones(4)]
    expected = [(given[0] * 2).sin().mul(2).exp(), (given[1] * 2).cos().add(1).exp()]
    compiled = fxstack.compile(program, fullgraph=True)
    torch.testing.assert_close([compiled(x) for x in given], expected)
    first = _stored(cache_dir)
    assert len(first) >= 3
    fxstack.reset()
    torch.testing.assert_close([compiled(x) for x in given], expected)
    assert _stored(cache_dir) == first


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_anomaly_detection_tells_nothing_of_what_tracing_tried(backend: str, cache_dir: Path) -> None:
    """Whether a result was released is tried: the engine raises where it was."""
    compiled = fxstack.compile(lambda x: x * 2 + 1, backend=backend)
    x = torch.ones(2, requires_grad=True)
    with (
        warnings.catch_warnings(record=True) as told,
        torch.autograd.set_detect_anomaly(True, check_nan=False),
    ):
        warnings.simplefilter("always")
        compiled(x).sum().backward()
        still = (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
    assert still == (True, False)
    assert not told
    assert x.grad is not None


class _Builds:
    """The graphs that are built: in which thread, and whether the next one was planned meanwhile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fail: tuple[str, ...] = ()) -> None:
        self.fail = fail
        self.threads: list[threading.Thread] = []
        self.beside: list[bool] = []
        self.plans = 0
        self.second = threading.Event()
        self._plan, self._build = stages.plan, stages.build_graph
        monkeypatch.setattr(stages, "processors", lambda: 2)
        monkeypatch.setattr(stages, "plan", self.plan)
        monkeypatch.setattr(stages, "build_graph", self.build)

    def plan(self, *args: Any, **options: Any) -> Any:
        self.plans += 1
        if self.plans == 2:
            self.second.set()
            if "plan" in self.fail:
                raise KeyboardInterrupt if "interrupt" in self.fail else ValueError("the backward's plan")
        return self._plan(*args, **options)

    def build(self, *args: Any, **options: Any) -> Any:
        self.threads.append(threading.current_thread())
        if len(self.threads) == 1:
            self.beside.append(self.second.wait(20 if threading.current_thread() is not MAIN else 0))
            if "build" in self.fail:
                raise ValueError("the forward's build")
        return self._build(*args, **options)


MAIN = threading.main_thread()


def _trained(x: torch.Tensor) -> list[torch.Tensor]:
    given = x.detach().requires_grad_()
    result = fxstack.compile(_function)(given)
    result.sum().backward()  # type: ignore[no-untyped-call]
    assert given.grad is not None
    return [result.detach(), given.grad]


def _trained_anew(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[torch.Tensor]:
    fxstack.reset()
    monkeypatch.setenv("FXSTACK_CACHE_DIR", str(folder))
    return _trained(torch.linspace(-1, 1, 32).view(4, 8))


def test_a_backward_is_planned_while_its_forward_is_compiled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    expected = _trained_anew(monkeypatch, tmp_path / "first")
    builds = _Builds(monkeypatch)
    found = _trained_anew(monkeypatch, tmp_path / "second")
    for mine, theirs in zip(found, expected, strict=True):
        assert torch.equal(mine, theirs)
    assert builds.beside == [True]
    assert builds.threads[0] is not MAIN
    assert not builds.threads[0].is_alive()
    assert builds.threads[1] is MAIN


def test_events_come_one_after_the_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    builds = _Builds(monkeypatch)
    kinds: list[str] = []
    with listening(lambda event: kinds.append(event.kind)):
        _trained_anew(monkeypatch, tmp_path)
    assert builds.threads == [MAIN, MAIN]
    assert builds.beside == [False]
    assert [kind for kind in kinds if kind in ("schedule", "compile")] == ["schedule", "compile"] * 2


@pytest.mark.parametrize(
    "fail", [("build",), ("plan",), ("plan", "build"), ("plan", "interrupt")], ids="-".join
)
def test_what_fails_first_is_what_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fail: tuple[str, ...]
) -> None:
    builds = _Builds(monkeypatch, fail)
    interrupted = "interrupt" in fail
    with pytest.raises(KeyboardInterrupt if interrupted else StackError) as caught:
        _trained_anew(monkeypatch, tmp_path)
    if not interrupted:
        assert ("the forward's build" if "build" in fail else "the backward's plan") in str(caught.value)
    assert not builds.threads[0].is_alive()
