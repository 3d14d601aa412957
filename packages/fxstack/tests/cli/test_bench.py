from __future__ import annotations

import json
from pathlib import Path

import pytest

from fxstack.cli import main

PROGRAM = """
import torch
def make():
    return lambda x, scale: torch.softmax(x * scale, -1), dict(x=torch.ones(8, 8, requires_grad=True), scale=2.0)
def three():
    return 1, 2, 3
def fails(graph, inputs):
    raise ValueError("mine")
def wrong(graph, inputs):
    return lambda *given: [result + 1 for result in graph.forward(*given)]
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    """A file with programs to compare."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return str(file)


def test_backends_are_compared_with_eager(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--backend", "inductor", "--backend", "aot_eager", "--train", "--seconds", "0.05"]
    assert main(["bench", program, *options, "--json"]) == 0
    eager, *others = json.loads(capsys.readouterr().out)
    assert [one["backend"] for one in others] == ["inductor", "aot_eager"]
    assert eager["difference"] == 0
    assert all(one["difference"] < 1e-5 and one["first"] > one["call"] > 0 for one in others)


def test_a_backend_that_is_unknown_is_a_row_and_a_status(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", program, "--backend", "no_such", "--seconds", "0"]) == 1
    assert "no_such" in capsys.readouterr().out


def test_a_file_that_makes_no_program_is_refused(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", program, "--make", "none"]) == 2
    assert "has no function 'none'" in capsys.readouterr().err
    assert main(["bench", program, "--make", "three"]) == 2
    assert "not (callable, arguments)" in capsys.readouterr().err
