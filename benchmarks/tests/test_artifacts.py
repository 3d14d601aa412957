"""An artifact is made in one process, and loaded and compared in others."""

from __future__ import annotations

import pytest

from benchmarks import artifacts


@pytest.mark.nightly
def test_fresh_processes_load_what_was_made(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers", reason="the model is one of transformers")
    assert artifacts.main(["--layers", "1", "--rounds", "1", "--processors", "1"]) == 0
    made, parts, *loads = capfd.readouterr().out.splitlines()
    assert made.startswith("make ")
    assert parts.startswith("parts ")
    told = [
        f"{what}, 1 processor{median} import" for what in ("load", "remember") for median in ("", ", median")
    ]
    assert [" ".join(line.split())[: len(start)] for line, start in zip(loads, told, strict=True)] == told
    assert all("beyond import torch" in line for line in loads)
