from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import fxstack
from fxstack.diagnosis import crash_report


@pytest.fixture(autouse=True)
def none_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Defects are new ones, and the program goes on after them."""
    monkeypatch.setattr(crash_report, "_WRITTEN", set())
    monkeypatch.setenv("FXSTACK_ON_INTERNAL_ERROR", "eager")


def _defective(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("secret words")


def _reports(folder: Path) -> list[str]:
    return [file.read_text() for file in (folder / "temporary").glob("fxstack-crash-*/report.txt")]


def _run(monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...] = (3,)) -> None:
    monkeypatch.setattr("aot_autograd.trace_joint", _defective)

    def secret_function(secret_argument: torch.Tensor) -> torch.Tensor:
        secret_variable = torch.relu(secret_argument)
        return secret_variable * 2.5

    compiled = fxstack.compile(secret_function)
    for size in sizes:
        assert compiled(torch.ones(size)).tolist() == [2.5] * size


def test_a_defect_leaves_a_report_without_anything_of_the_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _run(monkeypatch)
    (text,) = _reports(tmp_path)
    assert "error: AssertionError" in text
    assert f"torch {torch.__version__}" in text
    assert "fxstack.pipeline:" in text
    assert "graph(torch):\n  %0: float32[3] = user input\n  %1: float32[3] = torch.relu(%0)" in text
    assert "secret" not in text
    assert str(tmp_path) not in text
    assert Path(__file__).name not in text
    assert "/report.txt" in caplog.text


def test_all_is_kept_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FXSTACK_CRASH_REPORT", "full")
    _run(monkeypatch)
    (text,) = _reports(tmp_path)
    assert "AssertionError: secret words" in text
    assert "%secret_argument" in text
    assert f"# {__file__}:" in text


def test_one_defect_is_reported_once_and_never_if_so_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _run(monkeypatch, (3, 4, 5))
    assert len(_reports(tmp_path)) == 1
    monkeypatch.setattr(crash_report, "_WRITTEN", set())
    monkeypatch.setenv("FXSTACK_CRASH_REPORT", "off")
    _run(monkeypatch)
    assert len(_reports(tmp_path)) == 1


def test_the_program_goes_on_where_no_report_can_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(prefix: str) -> Any:
        raise OSError("no room")

    monkeypatch.setattr(crash_report, "lasting_folder", full)
    _run(monkeypatch)
    assert _reports(tmp_path) == []


def test_symbols_are_kept_and_what_they_are_read_from_is_not() -> None:
    lines = [
        "graph(torch):",
        "  %s0: int s0 = symbol input",
        "  %mine: float32[s0] = user input   # /a.py:1 in f",
        "where s0 in 2.. (8 seen, mine.size(0))",
        "given s0 > 2   # /a.py:2",
    ]
    text = "\n".join(lines)
    assert crash_report.anonymous(text).splitlines() == [
        "graph(torch):",
        "  %0: int s0 = symbol input",
        "  %1: float32[s0] = user input",
        "where s0 in 2.. (8 seen)",
        "given s0 > 2",
    ]
