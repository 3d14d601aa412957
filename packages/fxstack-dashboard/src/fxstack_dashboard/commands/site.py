"""``fxstack dashboard site``: the results as a folder of HTML files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fxstack.cli.output import as_json, say_json
from fxstack_dashboard.commands.options import database as database_option
from fxstack_dashboard.commands.options import filters, selection
from fxstack_dashboard.commands.options import threshold as threshold_option
from fxstack_dashboard.judging.history import history
from fxstack_dashboard.pages.contents import Contents
from fxstack_dashboard.pages.site import write_site
from fxstack_dashboard.storing.database import open_database


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("fxstack-dashboard-site"),
    show_default=True,
)
@filters
@threshold_option
@database_option
@as_json
def site(database: Path, output: Path, threshold: float, as_json: bool, **given: Any) -> int:
    """Write the results as a static site, which any web server can publish and any browser opens from disk.

    Exit status: 0; 2: the command cannot be done.
    """
    with open_database(database) as opened:
        known = history(opened, selection(given))
        contents = Contents(known, opened.machines(), threshold)
    written = write_site(contents, output)
    if as_json:
        say_json({"folder": str(output), "pages": len(written)})
    else:
        click.echo(f"{len(written)} pages; begin with {output / 'index.html'}")
    return 0
