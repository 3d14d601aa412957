"""``fxstack dashboard run``: measure the rows of a plan, one after the other, and keep each result at once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import click

from fxstack.cli.output import as_json, say_json
from fxstack_dashboard.commands.options import database as database_option
from fxstack_dashboard.errors import DashboardError
from fxstack_dashboard.judging.history import find_run
from fxstack_dashboard.judging.summaries import Summary, summarize
from fxstack_dashboard.measuring.request import Request
from fxstack_dashboard.measuring.row import measure_row
from fxstack_dashboard.planning import plan
from fxstack_dashboard.storing import origin
from fxstack_dashboard.storing.database import Database, open_database
from fxstack_dashboard.storing.records import Key, Result, Run
from fxstack_dashboard.suites.workload import PHASES


@click.command()
@click.option(
    "--suite", "suites", multiple=True, default=("tiny",), show_default=True, help="a name, or a .py file"
)
@click.option("--model", "models", multiple=True, help="only models whose name fits this pattern")
@click.option(
    "--backend",
    "backends",
    multiple=True,
    default=("stock", "fxstack"),
    show_default=True,
    help="what compiles",
)
@click.option(
    "--phase", "phases", multiple=True, type=click.Choice(PHASES), default=PHASES, show_default=True
)
@click.option("--device", "devices", multiple=True, type=click.Choice(["cpu", "cuda"]), default=("cpu",))
@click.option("--repeats", default=1, show_default=True, help="measure each row so often, to know the noise")
@click.option(
    "--rounds", default=15, show_default=True, help="steps timed of eager and of the backend, in turns"
)
@click.option("--threads", default=1, show_default=True, help="of torch's kernels on the CPU")
@click.option("--limit", default=300.0, show_default=True, help="seconds for each process of a row")
@click.option("--label", default="", help="a note that is kept with the run")
@click.option(
    "--repository", type=click.Path(exists=True, file_okay=False, path_type=Path), help="whose commit it is"
)
@click.option("--skip-missing", is_flag=True, help="leave out suites whose library is not installed")
@click.option(
    "--resume", metavar="RUN", help="go on with this run, or the last; other options are the run's own"
)
@click.option("--dry-run", is_flag=True, help="list the rows and measure none")
@database_option
@as_json
def run(database: Path, resume: str | None, limit: float, dry_run: bool, as_json: bool, **asked: Any) -> int:
    """Measure models under backends, each row in processes of its own.

    Backends: eager, stock (torch.compile), stock:NAME, fxstack, fxstack:NAME, or the name of any installed plug-in.
    Exit status: 0, or 1 if a row fails; 2: the command cannot be done.
    """
    if resume is None:
        made, described = _new_run(asked)
        if dry_run:
            return _list(made, as_json)
        with open_database(database, create=True) as opened:
            opened.add_run(made, described)
            return _measure(opened, made, limit, as_json)
    with open_database(database) as opened:
        made = find_run(opened.runs(), resume)
        _same_origin(made)
        return _list(made, as_json) if dry_run else _measure(opened, made, limit, as_json)


def _new_run(asked: dict[str, Any]) -> tuple[Run, dict[str, Any]]:
    planned = plan(
        asked["suites"],
        asked["models"],
        asked["backends"],
        asked["phases"],
        asked["devices"],
        asked["skip_missing"],
    )
    for name, why in planned.left_out.items():
        click.echo(f"left out: {name}: {why}", err=True)
    machine, described = origin.machine()
    commit, committed, dirty = origin.commit_of(asked["repository"] or origin.source_folder())
    numbers = {name: asked[name] for name in ("threads", "rounds", "repeats")}
    made = Run(
        id=uuid4().hex[:12],
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=machine,
        commit=commit,
        committed=committed,
        dirty=dirty,
        label=asked["label"],
        versions=origin.versions(),
        planned=planned.keys,
        files=planned.files,
        **numbers,
    )
    return made, described


def _same_origin(run: Run) -> None:
    machine, _ = origin.machine()
    versions = origin.versions()
    differs = [name for name in {*versions, *run.versions} if versions.get(name) != run.versions.get(name)]
    if machine != run.machine:
        differs.insert(0, "the machine")
    if differs:
        raise DashboardError(
            "DSH206",
            f"run {run.id} cannot go on here: {', '.join(differs)} differ from when it began",
            action="begin a run of its own; pages show them side by side",
        )


def _list(run: Run, as_json: bool) -> int:
    if as_json:
        say_json([key.data() for key in run.planned])
    else:
        for key in run.planned:
            click.echo(str(key))
    return 0


def _measure(opened: Database, run: Run, limit: float, as_json: bool) -> int:
    done = {(result.key, result.repeat) for result in opened.results(run.id)}
    left = [(key, n) for n in range(run.repeats) for key in run.planned if (key, n) not in done]
    click.echo(f"run {run.id}: {len(left)} of {len(run.planned) * run.repeats} measurements to do", err=True)
    try:
        for number, (key, repeat) in enumerate(_shown(left), 1):
            request = Request(
                run.files.get(key.suite, key.suite),
                key.model,
                key.backend,
                key.phase,
                key.device,
                run.threads,
                run.rounds,
            )
            outcome = measure_row(request, limit)
            result = Result(run.id, key, repeat, **outcome._asdict())
            opened.add_result(result)
            click.echo(f"[{number}/{len(left)}] {_line(result)}", err=True)
    except KeyboardInterrupt:
        click.echo(f"stopped; go on with: fxstack dashboard run --resume {run.id}", err=True)
        raise
    summaries = list(summarize(opened.results(run.id)).values())
    if as_json:
        say_json({"run": run.data(), "rows": [summary.data() for summary in summaries]})
    return int(any(summary.status == "fail" for summary in summaries))


def _shown(left: list[tuple[Key, int]]) -> Iterator[tuple[Key, int]]:
    """The rows, with a progress bar on a terminal."""
    if not sys.stderr.isatty():
        yield from left
        return
    from rich.console import Console  # slow to load, and for terminals only
    from rich.progress import track

    yield from track(left, description="measuring", console=Console(stderr=True))


def _line(result: Result) -> str:
    (summary,) = summarize([result]).values()
    return f"{result.key}: {describe(summary)}"


def describe(summary: Summary) -> str:
    """A row's outcome in a few words."""
    if summary.status != "pass":
        first = summary.reason.splitlines()[0] if summary.reason else ""
        return f"{summary.status} ({summary.stage}): {first[:200]}"
    speedup, cold = summary.metric("speedup"), summary.metric("cold")
    if speedup is None or cold is None:
        return f"pass, {summary.figures.get('eager_s', 0.0) * 1e3:.2f} ms a step"
    return f"pass, {speedup:.2f}x, first call {cold:.2f} s"
