"""The runner for other Pythons finds an interpreter or says that there is none, and selects tests that exist."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import bytecode_tests
from workspace import BY_NAME


def test_this_python_is_found_when_it_is_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        bytecode_tests, "candidates", lambda version: iter([Path("/nonexistent"), Path(sys.executable)])
    )
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert bytecode_tests.interpreter(version) == Path(sys.executable)
    assert bytecode_tests.interpreter("9.9") is None


def test_a_missing_python_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bytecode_tests, "candidates", lambda version: iter(()))
    assert bytecode_tests.main(["3.12"]) == 0
    assert "skipped: no CPython 3.12" in capsys.readouterr().out


def test_there_are_torch_free_tests() -> None:
    assert bytecode_tests.selected(BY_NAME["dynamo-capture"].folder)
