"""How commands speak: a table or lines for people, one JSON document for programs, colours on terminals only."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

as_json: Callable[[F], F] = click.option(
    "--json", "as_json", is_flag=True, help="print one JSON document in place of text"
)


def say_json(value: Any) -> None:
    """Print one line of JSON on standard output."""
    click.echo(json.dumps(value))


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
