"""The demo's lines say what was measured, and its exit status whether all was equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks import demo

ROW = {
    "cold": 2.0,
    "warm": 1.0,
    "inference_error": 1e-7,
    "training_error": 2e-6,
    "eager": 0.1,
    "fxstack": 0.05,
}


def test_a_line_stands_under_its_headings() -> None:
    heads = demo.LINE.format(*demo.COLUMNS)
    assert len(demo.line("mlp", ROW)) == len(heads)
    assert demo.line("mlp", ROW).split() == [
        "mlp",
        "yes",
        "1.0e-07",
        "2.0e-06",
        "100.0",
        "50.0",
        "2.00",
        "1.00",
    ]
    assert " NO " in demo.line("mlp", ROW | {"training_error": 1e-3})


def test_the_first_program_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("FXSTACK_CACHE_DIR", "")
    assert demo.first_program(Console(), tmp_path)
    assert "1 graph, compiled to 1 C++ kernel" in capsys.readouterr().out


@pytest.mark.parametrize("error, status", [(1e-7, 0), (1e-3, 1)])
def test_the_exit_status_says_whether_all_is_equal(
    error: float, status: int, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def measure(request: dict[str, Any], cache: Path) -> dict[str, float]:
        if request["measure"] == "first_call":
            return {"seconds": 1.0}
        return {key: value for key, value in ROW.items() if key != "warm"} | {"training_error": error}

    monkeypatch.setattr(demo, "first_program", lambda console, cache: True)
    monkeypatch.setattr(demo, "measure", measure)
    assert demo.main(["mlp", "bert"]) == status
    shown = capsys.readouterr().out
    assert "bert" in shown
    assert "more: nox -s demo -- gpt2" in shown


def test_an_unknown_model_is_refused(capsys: Any) -> None:
    with pytest.raises(SystemExit):
        demo.main(["gpt5"])
    assert "there is no model 'gpt5'" in capsys.readouterr().err
