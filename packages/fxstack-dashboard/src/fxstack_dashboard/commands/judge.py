"""``fxstack dashboard check`` and ``compare``: what became worse, against the runs before or against one run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from fxstack.cli.output import as_json, say_json
from fxstack_dashboard.commands.options import database as database_option
from fxstack_dashboard.commands.options import filters, selection
from fxstack_dashboard.commands.options import threshold as threshold_option
from fxstack_dashboard.judging.history import history
from fxstack_dashboard.judging.metrics import METRICS
from fxstack_dashboard.judging.regressions import Verdict
from fxstack_dashboard.storing.database import open_database

_NAMES = ("status", *METRICS)


@click.command()
@click.option("--run", "name", default="last", show_default=True, help="the beginning of a run's id")
@click.option("--metric", "metrics", multiple=True, type=click.Choice(_NAMES), help="judge only these")
@filters
@threshold_option
@database_option
@as_json
def check(
    database: Path, name: str, metrics: Sequence[str], threshold: float, as_json: bool, **given: Any
) -> int:
    """Judge a run against those before it on the same machine, by the rule of docs/dashboard.md.

    Exit status: 0, or 1 if anything became worse; 2: the command cannot be done.
    """
    with open_database(database) as opened:
        known = history(opened, selection(given))
    found = known.verdicts_of(known.run(name), threshold)
    return _say([v for v in found if not metrics or v.metric in metrics], as_json)


@click.command()
@click.argument("base")
@click.argument("other", default="last")
@filters
@threshold_option
@database_option
@as_json
def compare(database: Path, base: str, other: str, threshold: float, as_json: bool, **given: Any) -> int:
    """Compare run OTHER (the last, if not given) with run BASE, row by row.

    Exit status: 0, or 1 if anything is worse; 2: the command cannot be done.
    """
    with open_database(database) as opened:
        known = history(opened, selection(given))
    return _say(list(known.compared(known.run(base), known.run(other), threshold)), as_json)


def _say(found: Sequence[Verdict], as_json: bool) -> int:
    kinds = {kind: [v for v in found if v.kind == kind] for kind in ("regression", "improvement", "same")}
    if as_json:
        say_json([verdict.data() for verdict in found])
    else:
        for kind in ("regression", "improvement"):
            for verdict in kinds[kind]:
                click.echo(f"{kind}: {verdict}")
        click.echo(", ".join(f"{len(listed)} {kind}" for kind, listed in kinds.items()))
    return int(bool(kinds["regression"]))
