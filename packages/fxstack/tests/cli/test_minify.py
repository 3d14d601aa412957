from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fxstack.cli import main

FAULT = """
def raises(graph_module, example_inputs):
    if any("tanh" in node.name for node in graph_module.graph.nodes):
        raise ValueError("IND999: no tanh")
    return graph_module.forward
"""
PROGRAM = """
import torch
def program(x, y):
    z = torch.sin(x) + y
    return torch.tanh(z) * 2
INPUTS = (torch.ones(3), torch.ones(3))
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A program, beside a backend that fails."""
    (tmp_path / "faulty.py").write_text(FAULT)
    made = tmp_path / "program.py"
    made.write_text(PROGRAM)
    return made


@pytest.mark.nightly
def test_a_program_and_the_backend_beside_it(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = file.with_name("small.py")
    assert main(["minify", str(file), "-o", str(small), "--backend", "faulty:raises", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["outcome"]["kind"] == "error"
    assert "IND999" in found["outcome"]["detail"]
    assert "sin" not in small.read_text()
    run = subprocess.run([sys.executable, str(small)], capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stdout.partition(":")[0]) == (1, "error"), run.stderr


def test_a_right_program_has_nothing_to_minify(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["minify", str(file), "--backend", "eager"]) == 1
    assert "FXS601" in capsys.readouterr().err


@pytest.mark.nightly
def test_a_script_that_fails_in_eager_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "script.py"
    file.write_text("raise ValueError('mine')\n")
    assert main(["minify", str(file), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["error"]
    assert found["code"] == "FXS601"
    assert "it fails without compilation already (invalid: ValueError" in found["message"]
