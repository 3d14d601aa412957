"""How commands speak: a table or lines for people, one JSON document for programs, colours on terminals only."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def _note(ctx: click.Context, parameter: click.Parameter, value: bool) -> bool:
    if isinstance(ctx.obj, dict):
        ctx.obj[AS_JSON] = value
    return value


AS_JSON = "as_json"
"""Where the context's object, a dict, says whether a document was asked for."""
as_json: Callable[[F], F] = click.option(
    "--json",
    "as_json",
    is_flag=True,
    is_eager=True,  # before what may be wrong with the other arguments
    callback=_note,
    help="print one JSON document in place of text",
)


class OutputFile(click.Path):
    """The path of a file to write, in a folder that is there: what takes minutes does not fail at its end."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, writable=True, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        made = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not made.parent.is_dir():
            self.fail(f"there is no folder {str(made.parent)!r}", param, ctx)
        if not made.exists() and not os.access(made.parent, os.W_OK | os.X_OK):
            self.fail(f"nothing can be written to {str(made.parent)!r}", param, ctx)
        return made


def say_json(value: Any) -> None:
    """Print one line of JSON on standard output."""
    click.echo(json.dumps(value))


def say_error(error: click.ClickException) -> None:
    """Print what a command fails with as a document."""
    cause = error.__cause__
    code = getattr(cause, "code", None)
    say_json({"error": {"code": code if isinstance(code, str) else None, "message": error.format_message()}})


def say_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows: drawn to the width of a terminal, else as columns of text, whole."""
    lines = [list(row) for row in rows]
    if sys.stdout.isatty():
        from rich.console import Console  # slow to load, and for terminals only
        from rich.table import Table

        table = Table(*heads)
        for line in lines:
            table.add_row(*line)
        Console().print(table)
        return
    lines.insert(0, list(heads))
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    for line in lines:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def mebibytes(count: float) -> str:
    """Bytes as text."""
    return f"{count / 2**20:.1f} MiB"
