"""``fxstack minify``: a failing program becomes a few lines."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import click

from fxstack.cli.output import OutputFile, as_json, say_json
from fxstack.minify import NothingToMinifyError, Settings
from fxstack.minify import minify as minified


@click.command(short_help="Shrink a program that fails only where compiled.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-o", "--output", type=OutputFile(), help="write the small program there")
@click.option("--backend", default="inductor", show_default=True, help="a backend's name, or module:function")
@click.option("--dynamic/--static", default=None, help="as compile(dynamic=...)")
@click.option("--fullgraph", is_flag=True, help="as compile(fullgraph=True)")
@click.option("--slower-than", type=float, help="look for calls that take this many times eager's time")
@click.option("--seconds", type=float, default=600.0, show_default=True, help="stop the search after this")
@as_json
def minify(
    file: Path,
    output: Path | None,
    backend: str,
    dynamic: bool | None,
    fullgraph: bool,
    slower_than: float | None,
    seconds: float,
    as_json: bool,
) -> int:
    """Shrink the program in FILE, which fails only where it is compiled, to a few lines that fail in the same way.

    FILE defines `program` and its arguments, `INPUTS` or `CALLS`, or is a script of another kind, which ends well with
    compilation off. Exit status: 1 if there is nothing to minify.
    """
    settings = Settings(backend, dynamic, fullgraph, slower_than)

    def progress(lines: int, trials: int) -> None:
        if sys.stderr.isatty():
            click.echo(f"\r{lines} lines after {trials} trials ", nl=False, err=True)

    try:
        found = minified(
            file.read_text(encoding="utf-8"),
            settings,
            seconds=seconds,
            folder=file.resolve().parent,
            progress=progress,
        )
    except NothingToMinifyError as error:
        raise click.ClickException(str(error)) from error
    if sys.stderr.isatty():
        click.echo(err=True)
    if output is not None:
        output.write_text(found.text, encoding="utf-8")
    if as_json:
        say_json(asdict(found))
    else:
        click.echo(str(found) if output is None else str(found).partition("\n\n")[0])
    return 0
