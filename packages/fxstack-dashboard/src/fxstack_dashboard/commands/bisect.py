"""``fxstack dashboard bisect``: the first commit at which a row is worse."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click

from fxstack.cli.output import as_json, say_json
from fxstack_dashboard.bisecting.checkout import Checkout
from fxstack_dashboard.bisecting.driver import Measure, Measured, Trial
from fxstack_dashboard.bisecting.driver import bisect as search
from fxstack_dashboard.bisecting.environment import Environment
from fxstack_dashboard.errors import DashboardError
from fxstack_dashboard.judging.metrics import METRICS
from fxstack_dashboard.measuring.request import Request
from fxstack_dashboard.measuring.row import Outcome, measure_row
from fxstack_dashboard.planning import backend_name
from fxstack_dashboard.suites.registry import SUITES
from fxstack_dashboard.suites.workload import PHASES


@click.command()
@click.option("--good", required=True, metavar="REVISION", help="a commit at which it is as it should be")
@click.option(
    "--bad", default="HEAD", show_default=True, metavar="REVISION", help="a later one at which it is not"
)
@click.option("--metric", type=click.Choice(["status", *METRICS]), default="speedup", show_default=True)
@click.option(
    "--suite", default="tiny", show_default=True, help="a name, or a .py file, relative to the repository"
)
@click.option("--model", required=True)
@click.option("--backend", default="fxstack", show_default=True)
@click.option("--phase", type=click.Choice(PHASES), default="inference", show_default=True)
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--repeats", default=1, show_default=True, help="measurements of a commit; the median counts")
@click.option("--rounds", default=15, show_default=True)
@click.option("--threads", default=1, show_default=True)
@click.option("--limit", default=300.0, show_default=True, help="seconds for each process of a measurement")
@click.option(
    "--repository",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path("."),
    show_default=True,
    help="the repository to search",
)
@click.option("--setup", help="a shell command that makes a commit ready, run in its checkout")
@as_json
def bisect(
    good: str, bad: str, metric: str, repository: Path, setup: str | None, as_json: bool, **row: Any
) -> int:
    """Find the commit between two at which a row became worse.

    Measures in a clone of its own: your checkout, index and branches are not touched. Packages of this repository's
    layout are built for each commit; of another, the commit's files are imported before what is installed.
    Exit status: 0; 2: it cannot be done.
    """
    row["backend"] = backend_name(row["backend"])
    with tempfile.TemporaryDirectory(prefix="fxstack-bisect-") as folder:
        checkout = Checkout(repository, Path(folder) / "checkout")
        measure = _measurement(checkout, Environment(checkout, Path(folder), setup), metric, row)
        found = search(checkout, good, bad, metric, measure, _tell)
    if as_json:
        say_json(found.data())
    else:
        click.echo(f"the first bad commit is {found.commit[:12]}: {found.subject}")
        if found.possible:
            names = ", ".join(commit[:12] for commit in found.possible)
            click.echo(f"or one of these, which could not be measured: {names}")
    return 0


def _measurement(checkout: Checkout, environment: Environment, metric: str, row: dict[str, Any]) -> Measure:
    """Makes a commit ready and measures the row there."""
    limit, repeats = row.pop("limit"), row.pop("repeats")
    request = Request(suite=_suite(row.pop("suite"), checkout), **row)

    def measure(commit: str) -> Measured:
        why = environment.prepare(commit)
        if why:
            return Measured((), why)
        variables, python = environment.variables(), environment.python
        return _measured(metric, [measure_row(request, limit, variables, python) for _ in range(repeats)])

    return measure


def _tell(trial: Trial) -> None:
    values = ", ".join(f"{value:.4g}" for value in trial.measured.values)
    why = "".join(trial.measured.why.splitlines()[:1])
    click.echo(f"{trial.commit[:12]} {trial.verdict}: {values or why}", err=True)


def _suite(given: str, checkout: Checkout) -> str:
    if given in SUITES:
        return given
    path = Path(given)
    if path.is_absolute() and path.is_relative_to(checkout.repository):
        path = path.relative_to(checkout.repository)
    if path.suffix != ".py":
        raise DashboardError("DSH101", f"no suite is named {given!r}")
    return str(path if path.is_absolute() else checkout.folder / path)


def _measured(metric: str, found: list[Outcome]) -> Measured:
    """Values of a metric; a model that fails in eager cannot be judged, and one that fails compiled has no times."""
    unusable = next((outcome for outcome in found if outcome.status == "unusable"), None)
    if unusable is not None:
        return Measured((), unusable.reason)
    if metric == "status":
        return Measured(tuple(float(outcome.status == "fail") for outcome in found))
    failed = next((outcome for outcome in found if outcome.status == "fail"), None)
    if failed is not None:
        return Measured((), f"fails ({failed.stage}): {failed.reason}")
    values = [METRICS[metric].of(outcome.figures) for outcome in found]
    known = tuple(value for value in values if value is not None)
    return Measured(known, "" if known else f"{metric} was not measured")
