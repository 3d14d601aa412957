"""``fxstack dashboard runs`` and ``merge``: what the database holds, and taking over what another one does."""

from __future__ import annotations

from pathlib import Path

import click

from fxstack.cli.output import as_json, say_json, say_table
from fxstack_dashboard.commands.options import database as database_option
from fxstack_dashboard.storing.database import open_database


@click.command()
@database_option
@as_json
def runs(database: Path, as_json: bool) -> int:
    """List runs, the earliest first, with how many of their measurements are done.

    Exit status: 0; 2: the command cannot be done.
    """
    with open_database(database) as opened:
        results = opened.results()
        listed = opened.runs()
    rows = []
    for run in listed:
        done = sum(1 for result in results if result.run == run.id)
        rows.append({**run.data(), "done": done, "planned": len(run.planned) * run.repeats})
    if as_json:
        say_json(rows)
        return 0
    heads = ("run", "started", "commit", "machine", "threads", "done", "label")
    say_table(
        heads,
        (
            (
                row["id"],
                row["started"],
                row["commit"][:12] + ("+" if row["dirty"] else ""),
                row["machine"],
                str(row["threads"]),
                f"{row['done']}/{row['planned']}",
                row["label"],
            )
            for row in rows
        ),
    )
    return 0


@click.command()
@click.argument("others", nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path))
@database_option
@as_json
def merge(others: tuple[Path, ...], database: Path, as_json: bool) -> int:
    """Take over the results of other databases, as of other machines. What is known already is left as it is.

    Exit status: 0; 2: the command cannot be done, and nothing of that file was taken over.
    """
    total = {"runs": 0, "results": 0}
    with open_database(database, create=True) as opened:
        for path in others:
            with open_database(path) as other:
                for name, count in opened.merge(other).items():
                    total[name] += count
    if as_json:
        say_json(total)
    else:
        click.echo(f"{total['runs']} runs and {total['results']} results are new")
    return 0
