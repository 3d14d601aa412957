"""The command line from a measurement to pages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fxstack.cli import main
from fxstack_dashboard.commands.group import COMMANDS
from fxstack_dashboard.storing.database import open_database
from fxstack_dashboard.storing.records import Result, Run

MACHINE = {"processor": "a processor", "cores": 2, "memory_gib": 8, "system": "Linux", "gpus": []}
Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_says_what_its_exit_status_means(name: str, capsys: Capture) -> None:
    assert main(["dashboard", name, "--help"]) == 0
    assert "Exit status: 0" in " ".join(capsys.readouterr().out.split())


def _json(arguments: list[str], capsys: Capture, status: int = 0) -> Any:
    assert main(["dashboard", *arguments, "--json"]) == status
    return json.loads(capsys.readouterr().out)


@pytest.mark.nightly
def test_a_run_that_was_interrupted_goes_on_and_becomes_pages(
    tmp_path: Path, models_file: Callable[..., str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = ["--database", str(tmp_path / "results.db")]
    suite = models_file("pass")
    from fxstack_dashboard.commands import run as module

    measure = module.measure_row
    calls: list[object] = []

    def interrupted(request: Any, limit: float) -> Any:
        calls.append(request)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return measure(request, limit)

    monkeypatch.setattr(module, "measure_row", interrupted)
    asked = ["--suite", suite, "--phase", "inference", "--rounds", "3"]
    asked += ["--backend", "fxstack:eager", "--backend", "eager"]
    assert main(["dashboard", "run", *asked, *data]) == 130
    assert "run --resume" in capsys.readouterr().err
    (listed,) = _json(["runs", *data], capsys)
    assert (listed["done"], listed["planned"]) == (1, 2)
    made = _json(["run", "--resume", "last", *data], capsys)
    assert [(row["model"], row["backend"], row["status"]) for row in made["rows"]] == [
        ("linear", "eager", "pass"),
        ("linear", "fxstack:eager", "pass"),
    ]
    assert len(calls) == 3
    shown = _json(["show", "--backend", "fxstack*", *data], capsys)
    assert [row["graphs"] for row in shown["rows"]] == [1]
    assert shown["overview"][0]["passed"] == 1
    assert _json(["check", *data], capsys) == []
    assert main(["dashboard", "show", *data]) == 0
    assert "mine" in capsys.readouterr().out
    folder = tmp_path / "site"
    assert _json(["site", "-o", str(folder), *data], capsys)["pages"] == 5
    assert str(tmp_path) not in "".join(path.read_text() for path in folder.rglob("*.html"))


def test_a_row_that_fails_is_the_exit_status(
    tmp_path: Path, models_file: Callable[..., str], capsys: Capture
) -> None:
    data = ["--database", str(tmp_path / "results.db")]
    suite = models_file("raise ValueError('mine')")
    asked = ["--suite", suite, "--backend", "fxstack:eager", "--phase", "inference", "--rounds", "3"]
    made = _json(["run", *asked, *data], capsys, status=1)
    assert (made["rows"][0]["status"], made["rows"][0]["reason"]) == ("fail", "ValueError: mine")
    assert main(["dashboard", "show", *data]) == 1


def test_a_plan_is_listed_without_measuring(tmp_path: Path, capsys: Capture) -> None:
    database = tmp_path / "results.db"
    rows = _json(
        ["run", "--dry-run", "--model", "g*", "--backend", "aot_eager", "--database", str(database)], capsys
    )
    assert [(row["model"], row["backend"], row["phase"]) for row in rows] == [
        ("gated", "fxstack:aot_eager", "inference"),
        ("gated", "fxstack:aot_eager", "training"),
    ]
    assert not database.exists()


@pytest.fixture
def two_runs(tmp_path: Path, make_run: Callable[..., Run], make_result: Callable[..., Result]) -> str:
    """A database in which the second run's row compiles three times as long."""
    path = tmp_path / "two.db"
    with open_database(path, create=True) as opened:
        for number, cold in enumerate((1.0, 3.0)):
            opened.add_run(make_run(number), MACHINE)
            opened.add_result(
                make_result(f"run{number:04}", figures={"cold_s": cold, "eager_s": 1.0, "step_s": 1.0})
            )
    return str(path)


def test_check_and_compare_fail_where_something_is_worse(two_runs: str, capsys: Capture) -> None:
    data = ["--database", two_runs]
    for command in (["check"], ["compare", "run0000"]):
        found = {one["metric"]: one["kind"] for one in _json([*command, *data], capsys, status=1)}
        assert found == {"speedup": "same", "cold": "regression"}
    assert main(["dashboard", "check", *data]) == 1
    assert "first call, cold 1 s before, 3 s now (200.0% worse, limit 15.0%)" in capsys.readouterr().out
    assert _json(["check", "--metric", "speedup", *data], capsys)
    assert _json(["check", "--threshold", "5", *data], capsys)
    assert _json(["check", "--run", "run0000", *data], capsys) == []
    assert _json(["compare", "run0001", "run0000", *data], capsys)


def test_merge_and_runs(two_runs: str, tmp_path: Path, capsys: Capture) -> None:
    data = ["--database", str(tmp_path / "merged.db")]
    assert _json(["merge", two_runs, *data], capsys) == {"runs": 2, "results": 2}
    assert _json(["merge", two_runs, *data], capsys) == {"runs": 0, "results": 0}
    assert [run["id"] for run in _json(["runs", *data], capsys)] == ["run0000", "run0001"]
    assert main(["dashboard", "runs", *data]) == 0
    assert "1/1" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, code",
    [
        (["run", "--suite", "none"], "DSH101"),
        (["run", "--backend", "none"], "DSH104"),
        (["run", "--backend", "stock:none"], "DSH104"),
        (["run", "--model", "none"], "DSH106"),
        (["run", "--resume", "last"], "DSH201"),
        (["check"], "DSH201"),
        (["site"], "DSH201"),
        (["merge", "none.db"], "DSH201"),
    ],
)
def test_what_cannot_be_done_is_status_2_with_a_code(
    arguments: list[str], code: str, tmp_path: Path, capsys: Capture
) -> None:
    assert main(["dashboard", *arguments, "--database", str(tmp_path / "none.db")]) == 2
    assert f"[{code}]" in capsys.readouterr().err


def test_a_run_does_not_go_on_with_other_versions(two_runs: str, capsys: Capture) -> None:
    assert main(["dashboard", "run", "--resume", "last", "--database", two_runs]) == 2
    error = capsys.readouterr().err
    assert "[DSH206]" in error
    assert "the machine" in error
    assert main(["dashboard", "show", "--run", "run", "--database", two_runs]) == 2
    assert "several runs" in capsys.readouterr().err


def test_suites_are_listed(capsys: Capture) -> None:
    found = {one["name"]: one for one in _json(["suites"], capsys)}
    assert found.keys() == {"tiny", "transformers", "timm", "torchvision"}
    assert found["tiny"]["missing"] is None
    assert main(["dashboard", "suites"]) == 0
    assert "gated" in capsys.readouterr().out
