"""An artifact is made in one process, and loaded and compared in others."""

from __future__ import annotations

import pytest

from benchmarks import artifacts


def test_fresh_processes_load_what_was_made(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers", reason="the model is one of transformers")
    assert artifacts.main(["--layers", "1", "--rounds", "1"]) == 0
    lines = capfd.readouterr().out.splitlines()
    told = ["make", "load", "load, median", "remember", "remember, median"]
    assert [line[:18].strip() for line in lines] == told
    assert all("beyond import torch" in line for line in lines[1:])
