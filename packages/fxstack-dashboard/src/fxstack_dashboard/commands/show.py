"""``fxstack dashboard show`` and ``suites``: results, and what can be measured, as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fxstack.cli.output import as_json, say_json, say_table
from fxstack_dashboard.commands.options import database as database_option
from fxstack_dashboard.commands.options import filters, selection
from fxstack_dashboard.judging.history import history
from fxstack_dashboard.judging.metrics import METRICS
from fxstack_dashboard.judging.overview import Line, overview
from fxstack_dashboard.storing.database import open_database
from fxstack_dashboard.suites.registry import SUITES


@click.command()
@click.option("--run", "name", default="last", show_default=True, help="the beginning of a run's id")
@filters
@database_option
@as_json
def show(database: Path, name: str, as_json: bool, **given: Any) -> int:
    """Show the rows of a run, and pass rate and geometric means of each suite.

    Exit status: 0, or 1 if a row fails; 2: the command cannot be done.
    """
    with open_database(database) as opened:
        known = history(opened, selection(given))
    run = known.run(name)
    rows = sorted(known.of_run(run), key=lambda summary: summary.key)
    lines = overview(rows)
    if as_json:
        say_json(
            {
                "run": run.data(),
                "overview": [line.data() for line in lines],
                "rows": [row.data() for row in rows],
            }
        )
    else:
        heads = ("suite", "model", "phase", "backend", "device", "status", *METRICS)
        say_table(
            heads,
            (
                (
                    row.key.suite,
                    row.key.model,
                    row.key.phase,
                    row.key.backend,
                    row.key.device,
                    row.status if row.status == "pass" else f"{row.status}: {row.stage}",
                    *(metric.show(row.metric(metric.name)) for metric in METRICS.values()),
                )
                for row in rows
            ),
        )
        click.echo()
        say_table(
            ("suite", "device", "phase", "backend", "pass", "speed-up", "cold", "warm"), map(_line, lines)
        )
    return int(any(row.status == "fail" for row in rows))


def _line(line: Line) -> tuple[str, ...]:
    figures = ((line.speedup, "speedup"), (line.cold, "cold"), (line.warm, "warm"))
    shown = (METRICS[name].show(value) for value, name in figures)
    return (line.suite, line.device, line.phase, line.backend, f"{line.passed}/{line.total}", *shown)


@click.command()
@as_json
def suites(as_json: bool) -> int:
    """List suites and their models, and what to install for those that cannot be used.

    Exit status: 0.
    """
    known = {suite.name: [workload.name for workload in suite.workloads()] for suite in SUITES.values()}
    missing = {suite.name: suite.missing() for suite in SUITES.values()}
    if as_json:
        facts = ({"name": suite.name, "what": suite.what} for suite in SUITES.values())
        say_json([{**one, "models": known[one["name"]], "missing": missing[one["name"]]} for one in facts])
        return 0
    for suite in SUITES.values():
        click.echo(f"{suite.name}: {suite.what}")
        click.echo(f"  {', '.join(known[suite.name])}")
        if missing[suite.name]:
            click.echo(f"  cannot be used: {missing[suite.name]}")
    return 0
