"""The file of results: what is written is read back, other files are refused unchanged, databases merge."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from fxstack_dashboard.errors import DashboardError
from fxstack_dashboard.storing.database import SCHEMA_VERSION, open_database
from fxstack_dashboard.storing.records import Key, Result, Run

MACHINE = {"processor": "a processor", "cores": 2}
Make = Callable[..., Run]
MakeResult = Callable[..., Result]


def test_what_is_written_is_read_back(tmp_path: Path, make_run: Make, make_result: MakeResult) -> None:
    path = tmp_path / "new folder" / "results.db"
    run = make_run(1, label="a note", dirty=True, files={"mine": "/mine.py"})
    failed = make_result(run.id, repeat=1, status="fail", reason="x", figures={"error": float("inf")})
    with open_database(path, create=True) as opened:
        opened.add_run(run, MACHINE)
        opened.add_result(make_result(run.id))
        opened.add_result(failed)
    with open_database(path) as opened:
        assert opened.runs() == [run]
        assert opened.machines() == {run.machine: MACHINE}
        assert opened.results() == opened.results(run.id) == [make_result(run.id), failed]


def test_a_result_is_written_once(tmp_path: Path, make_run: Make, make_result: MakeResult) -> None:
    with open_database(tmp_path / "results.db", create=True) as opened:
        opened.add_run(make_run(1), MACHINE)
        opened.add_result(make_result("run0001"))
        with pytest.raises(sqlite3.IntegrityError):
            opened.add_result(make_result("run0001"))
        with pytest.raises(sqlite3.IntegrityError):
            opened.add_result(make_result("no such run"))


def _refused(path: Path, *, create: bool = False) -> str:
    before = path.read_bytes() if path.exists() else None
    with pytest.raises(DashboardError) as caught, open_database(path, create=create):
        pass
    assert (path.read_bytes() if path.exists() else None) == before
    return caught.value.code


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize("version", [SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])
def test_another_version_of_the_schema_is_refused_and_not_changed(
    tmp_path: Path, version: int, create: bool
) -> None:
    path = tmp_path / "results.db"
    with open_database(path, create=True):
        pass
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    assert _refused(path, create=create) == "DSH203"


@pytest.mark.parametrize("create", [False, True])
def test_files_of_others_are_refused_and_not_changed(tmp_path: Path, create: bool) -> None:
    text = tmp_path / "text.db"
    text.write_text("not a database, but long enough to have a header of one hundred bytes " * 3)
    assert _refused(text, create=create) == "DSH202"
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE theirs (x)")
    connection.commit()
    connection.close()
    assert _refused(other, create=create) == "DSH202"


def test_a_database_that_is_not_there_is_an_error_unless_it_is_to_be_made(tmp_path: Path) -> None:
    assert _refused(tmp_path / "none.db") == "DSH201"
    assert not (tmp_path / "none.db").exists()


def test_merging_takes_what_is_new(tmp_path: Path, make_run: Make, make_result: MakeResult) -> None:
    mine, theirs = tmp_path / "mine.db", tmp_path / "theirs.db"
    other = Key("tiny", "attention", "fxstack", "inference", "cpu")
    with open_database(mine, create=True) as one, open_database(theirs, create=True) as two:
        one.add_run(make_run(1), MACHINE)
        one.add_result(make_result("run0001"))
        two.add_run(make_run(1), MACHINE)
        two.add_result(make_result("run0001"))
        two.add_result(make_result("run0001", key=other))
        two.add_run(make_run(2, machine="machine2"), {"processor": "another"})
        two.add_result(make_result("run0002"))
        assert one.merge(two) == {"runs": 1, "results": 2}
        assert one.merge(two) == {"runs": 0, "results": 0}
        assert one.runs() == two.runs()
        assert one.results() == two.results()
        assert one.machines() == two.machines()


def test_merging_results_that_differ_takes_nothing(
    tmp_path: Path, make_run: Make, make_result: MakeResult
) -> None:
    with (
        open_database(tmp_path / "mine.db", create=True) as one,
        open_database(tmp_path / "theirs.db", create=True) as two,
    ):
        one.add_run(make_run(1), MACHINE)
        one.add_result(make_result("run0001"))
        two.add_run(make_run(0), MACHINE)
        two.add_run(make_run(1), MACHINE)
        two.add_result(make_result("run0001", status="fail"))
        with pytest.raises(DashboardError, match="DSH205"):
            one.merge(two)
        assert one.runs() == [make_run(1)]
        assert one.results() == [make_result("run0001")]
