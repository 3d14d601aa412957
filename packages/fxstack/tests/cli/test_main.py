from __future__ import annotations

import json
from pathlib import Path

import pytest

from fxstack.cli import COMMANDS, main


def test_doctor_succeeds_where_a_compiler_is_and_fails_where_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("ok ") for line in lines)
    assert max(map(len, lines)) < 120 + len(str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert main(["doctor"]) == 1
    text = capsys.readouterr().out
    assert "!! C++ compiler" in text
    assert "to do: " in text
    assert main(["doctor", "--json"]) == 1
    found = {one["name"]: one["to do"] for one in json.loads(capsys.readouterr().out)}
    assert [name for name, action in found.items() if action] == ["C++ compiler"]


def test_a_cache_folder_that_cannot_be_used_is_to_be_mended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FXSTACK_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert main(["doctor"]) == 1
    assert "$FXSTACK_CACHE_DIR" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [["cure"], ["run", "no-such-file.py"], ["cache", "prune", "--max-size", "x"]]
)
def test_a_wrong_command_line_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("Usage: fxstack")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_says_what_its_exit_status_means(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith(f"Usage: fxstack {name}")
    assert name == "cache" or "Exit status" in text


def test_backends_and_operators_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backends", "--json"]) == 0
    found = {one["name"]: one["state"] for one in json.loads(capsys.readouterr().out)}
    assert found.keys() >= {"eager", "aot_eager", "inductor"}
    assert found["inductor"] == "ok"
    assert main(["ops", "aten.softplus", "--json"]) == 0
    listed = {one["operator"]: one["how"] for one in json.loads(capsys.readouterr().out)}
    assert listed["aten.softplus.default"] == "decomposed"
    assert main(["ops", "aten.mm.default"]) == 0
    assert "library" in capsys.readouterr().out
    assert main(["ops", "no such operator"]) == 1
