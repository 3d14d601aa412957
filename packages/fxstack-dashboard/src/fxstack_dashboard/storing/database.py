"""The database: one SQLite file, whose schema has a version; a file of another version is refused, not changed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from fxstack_dashboard.errors import DashboardError
from fxstack_dashboard.storing.records import FIGURES, Key, Result, Run

APPLICATION = 0x66784442
"""SQLite's ``application_id``: by it a file is known to be ours ("fxDB")."""
SCHEMA_VERSION = 1
_KEY = ("suite", "model", "backend", "phase", "device")
_SCHEMA = f"""
CREATE TABLE machine (id TEXT PRIMARY KEY, description TEXT NOT NULL);
CREATE TABLE run (
    id TEXT PRIMARY KEY, started TEXT NOT NULL, machine TEXT NOT NULL REFERENCES machine (id),
    commit_id TEXT NOT NULL, committed TEXT NOT NULL, dirty INTEGER NOT NULL, label TEXT NOT NULL,
    threads INTEGER NOT NULL, rounds INTEGER NOT NULL, repeats INTEGER NOT NULL,
    versions TEXT NOT NULL, planned TEXT NOT NULL, files TEXT NOT NULL);
CREATE TABLE result (
    run TEXT NOT NULL REFERENCES run (id), {", ".join(f"{name} TEXT NOT NULL" for name in _KEY)},
    repeat INTEGER NOT NULL, status TEXT NOT NULL, stage TEXT NOT NULL, reason TEXT NOT NULL,
    traceback TEXT NOT NULL, reference TEXT NOT NULL, samples TEXT NOT NULL,
    {", ".join(f"{name} REAL" for name in FIGURES)},
    PRIMARY KEY (run, {", ".join(_KEY)}, repeat));
CREATE INDEX result_row ON result ({", ".join(_KEY)});
"""
_RUN = "id, started, machine, commit_id, committed, dirty, label, threads, rounds, repeats, versions, planned, files"
_RESULT = ("run", *_KEY, "repeat", "status", "stage", "reason", "traceback", "reference", "samples", *FIGURES)


class Database:
    """An open database. Every method that writes commits before it returns."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.row_factory = sqlite3.Row

    def add_run(self, run: Run, machine: dict[str, Any]) -> None:
        """Begin a run on a machine, which is described by plain data."""
        with self._connection as connection:
            connection.execute("INSERT OR IGNORE INTO machine VALUES (?, ?)", (run.machine, _json(machine)))
            connection.execute(f"INSERT INTO run ({_RUN}) VALUES ({_marks(13)})", _run_row(run))

    def add_result(self, result: Result) -> None:
        """Keep one measurement."""
        names = ", ".join(_RESULT)
        with self._connection as connection:
            connection.execute(
                f"INSERT INTO result ({names}) VALUES ({_marks(len(_RESULT))})", _result_row(result)
            )

    def runs(self) -> list[Run]:
        """All runs, the earliest first."""
        rows = self._connection.execute(f"SELECT {_RUN} FROM run ORDER BY started, id")
        return [_run_of(row) for row in rows]

    def machines(self) -> dict[str, dict[str, Any]]:
        """Descriptions by id."""
        rows = self._connection.execute("SELECT id, description FROM machine ORDER BY id")
        return {row["id"]: json.loads(row["description"]) for row in rows}

    def results(self, run: str | None = None) -> list[Result]:
        """The results of one run, or all of them, the earliest run's first."""
        query = "SELECT result.* FROM result JOIN run ON run.id = result.run"
        ordered = f" ORDER BY run.started, run.id, {', '.join(_KEY)}, repeat"
        where, given = ("", ()) if run is None else (" WHERE run.id = ?", (run,))
        return [_result_of(row) for row in self._connection.execute(query + where + ordered, given)]

    def merge(self, other: Database) -> dict[str, int]:
        """Take over what another database has; how many runs and results are new.

        DashboardError DSH205 if both have a result of the same run and row, and they differ: nothing is taken then.
        """
        added = {"runs": 0, "results": 0}
        known = {run.id: run for run in self.runs()}
        mine = {(result.run, result.key, result.repeat): result for result in self.results()}
        described = other.machines()
        with self._connection as connection:
            for run in other.runs():
                if run.id not in known:
                    machine = (run.machine, _json(described[run.machine]))
                    connection.execute("INSERT OR IGNORE INTO machine VALUES (?, ?)", machine)
                    connection.execute(f"INSERT INTO run ({_RUN}) VALUES ({_marks(13)})", _run_row(run))
                    added["runs"] += 1
            for result in other.results():
                here = mine.get((result.run, result.key, result.repeat))
                if here is None:
                    names = ", ".join(_RESULT)
                    marks = _marks(len(_RESULT))
                    connection.execute(f"INSERT INTO result ({names}) VALUES ({marks})", _result_row(result))
                    added["results"] += 1
                elif here != result:
                    raise DashboardError(
                        "DSH205",
                        f"both databases have results of run {result.run} for {result.key}, and they differ",
                        action="nothing was merged; one of the files was changed by hand",
                    )
        return added


@contextmanager
def open_database(path: Path, *, create: bool = False) -> Iterator[Database]:
    """The database in a file.

    DashboardError DSH201: there is none; DSH202: the file is something else; DSH203: it has another version of the
    schema.
    """
    if not path.exists() and not create:
        raise DashboardError(
            "DSH201", f"there is no database {str(path)!r}", action="fxstack dashboard run makes one"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        try:
            _prepare(connection, path, create)
        except sqlite3.DatabaseError as error:
            raise DashboardError(
                "DSH202", f"{str(path)!r} is no database of the dashboard: {error}"
            ) from error
        yield Database(connection)


def _prepare(connection: sqlite3.Connection, path: Path, create: bool) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    if empty and application == 0 and create:
        stamps = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {SCHEMA_VERSION};"
        connection.executescript(f"BEGIN; {_SCHEMA} {stamps} COMMIT;")
        return
    if application != APPLICATION:
        raise DashboardError("DSH202", f"{str(path)!r} is no database of the dashboard")
    if version != SCHEMA_VERSION:
        age = "a newer" if version > SCHEMA_VERSION else "an older"
        raise DashboardError(
            "DSH203",
            f"{str(path)!r} has schema version {version}, of {age} fxstack-dashboard; this one reads {SCHEMA_VERSION}",
            action="use the fxstack-dashboard that wrote it, or begin another file with --database; it was not changed",
        )


def _marks(count: int) -> str:
    return ", ".join("?" * count)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _run_row(run: Run) -> tuple[Any, ...]:
    planned = _json([[getattr(key, name) for name in _KEY] for key in run.planned])
    texts = (_json(dict(run.versions)), planned, _json(dict(run.files)))
    when = (run.id, run.started, run.machine, run.commit, run.committed, int(run.dirty), run.label)
    return (*when, run.threads, run.rounds, run.repeats, *texts)


def _run_of(row: sqlite3.Row) -> Run:
    names = ("id", "started", "machine", "label", "threads", "rounds", "repeats", "committed")
    return Run(
        **{name: row[name] for name in names},
        commit=row["commit_id"],
        dirty=bool(row["dirty"]),
        versions=json.loads(row["versions"]),
        planned=tuple(Key(*key) for key in json.loads(row["planned"])),
        files=json.loads(row["files"]),
    )


def _result_row(result: Result) -> tuple[Any, ...]:
    key = [getattr(result.key, name) for name in _KEY]
    texts = (result.status, result.stage, result.reason, result.traceback, result.reference)
    figures = [result.figures.get(name) for name in FIGURES]
    return (result.run, *key, result.repeat, *texts, _json(dict(result.samples)), *figures)


def _result_of(row: sqlite3.Row) -> Result:
    names = ("run", "repeat", "status", "stage", "reason", "traceback", "reference")
    return Result(
        **{name: row[name] for name in names},
        key=Key(*(row[name] for name in _KEY)),
        figures={name: row[name] for name in FIGURES if row[name] is not None},
        samples=json.loads(row["samples"]),
    )
