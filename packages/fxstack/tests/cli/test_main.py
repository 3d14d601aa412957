from __future__ import annotations

import json
from importlib.metadata import EntryPoints
from pathlib import Path

import click
import pytest

import fxstack.cli
from fxstack.cli import COMMANDS, ELSEWHERE, main


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


class _Entry:
    """An entry point of another distribution."""

    def __init__(self, name: str, command: click.Command) -> None:
        self.name = name
        self._command = command

    def load(self) -> click.Command:
        return self._command


def _install(monkeypatch: pytest.MonkeyPatch, *entries: _Entry) -> None:
    def found(*, group: str, name: str | None = None) -> EntryPoints:
        assert group == "fxstack.commands"
        return EntryPoints(entry for entry in entries if name in (None, entry.name))  # type: ignore[misc]

    monkeypatch.setattr(fxstack.cli, "entry_points", found)


@pytest.mark.parametrize("arguments", [[], ["run", "--suite", "tiny"], ["--help"]])
def test_a_command_of_a_package_that_is_not_installed_says_which(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _install(monkeypatch)
    for name, distribution in ELSEWHERE.items():
        assert main([name, *arguments]) == 1
        assert f"pip install {distribution}" in capsys.readouterr().err
    assert main(["--help"]) == 0
    assert "pip install fxstack-dashboard" in capsys.readouterr().out


def test_another_distribution_adds_a_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    def greet() -> int:
        """Say hello."""
        click.echo("hello")
        return 3

    _install(monkeypatch, _Entry("greet", greet))
    assert main(["greet"]) == 3
    assert capsys.readouterr().out == "hello\n"
    assert main(["--help"]) == 0
    assert "Say hello." in capsys.readouterr().out


def test_the_list_of_commands_is_whole_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.split("Commands:")[1].strip().splitlines()
    own = [line for line in lines if line.split()[0] in COMMANDS]
    assert len(own) == len(COMMANDS)
    assert [line for line in own if line.endswith("...")] == []


@pytest.mark.parametrize("command", ["explain", "report", "minify", "compile"])
def test_where_nothing_can_be_written_is_told_before_anything_runs(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "program.py"
    file.write_text("raise SystemExit('it ran')\n")
    for output, words in ((tmp_path / "none" / "made", "there is no folder"), (tmp_path, "is a directory")):
        assert main([command, "-o", str(output), str(file)]) == 2
        said = capsys.readouterr()
        assert words in said.err
        assert "it ran" not in said.err + said.out
