"""``fxstack dashboard bisect`` in a user's repository, with real measurements."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from fxstack.cli import main

SUITE = """
import torch, model
WORKLOADS = [("mine", lambda: model.Mine(4, 4), lambda: (torch.randn(3, 4),))]
"""
MODEL = """
from torch import nn
class Mine(nn.Linear):
    def forward(self, x):
        {body}
        return super().forward(x + 1)
"""
BODIES = ("pass", "x = x * 2", "print(end='')", "x = x * 2; print(end='')")


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=A", "-c", "user.email=a@example.org", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose third commit adds a graph break to the model."""
    folder = tmp_path / "mine"
    folder.mkdir()
    _git(folder, "init", "--quiet")
    (folder / "suite.py").write_text(SUITE)
    for body in BODIES:
        (folder / "model.py").write_text(MODEL.format(body=body))
        _git(folder, "add", "-A")
        _git(folder, "commit", "--quiet", "-m", f"body: {body}")
    return folder


@pytest.mark.nightly
def test_the_commit_that_broke_a_users_graph_is_found(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "model.py").write_text("what is being edited is not measured")
    asked = ["--suite", "suite.py", "--model", "mine", "--backend", "fxstack:eager", "--rounds", "3"]
    asked += ["--metric", "breaks", "--good", "HEAD~3", "--repository", str(repository), "--json"]
    assert main(["dashboard", "bisect", *asked]) == 0
    output = capsys.readouterr()
    found = json.loads(output.out)
    assert found["subject"] == "body: print(end='')"
    assert [(trial["verdict"], trial["values"]) for trial in found["trials"]][:2] == [
        ("good", [0.0]),
        ("bad", [1.0]),
    ]
    assert found["commit"][:12] in output.err
    assert _git(repository, "status", "--porcelain") == "M model.py"


def test_a_setup_that_fails_is_told(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--suite", "suite.py", "--model", "mine", "--good", "HEAD~3", "--repository", str(repository)]
    assert (
        main(["dashboard", "bisect", *asked, "--setup", "test -e suite.py && echo no luck >&2 && exit 7"])
        == 2
    )
    error = capsys.readouterr().err
    assert "[DSH303]" in error
    assert "status 7: no luck" in error
    assert main(["dashboard", "bisect", *asked, "--suite", "none"]) == 2
    assert "[DSH101]" in capsys.readouterr().err
