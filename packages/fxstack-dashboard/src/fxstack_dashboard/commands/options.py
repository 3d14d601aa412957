"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from fxstack_dashboard.storing.selection import Selection

F = TypeVar("F", bound=Callable[..., Any])
FILTERS = ("suite", "model", "backend", "phase", "device")

database: Callable[[F], F] = click.option(
    "--database",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("fxstack-dashboard.db"),
    show_default=True,
    help="the file of results",
)
threshold: Callable[[F], F] = click.option(
    "--threshold",
    default=0.05,
    show_default=True,
    help="a relative change below it counts as none, however little noise there is",
)


def filters(command: F) -> F:
    """``--suite``, ``--model`` and the others: patterns, each may be repeated."""
    for name in reversed(FILTERS):
        command = click.option(f"--{name}", multiple=True, help=f"only rows whose {name} fits this pattern")(
            command
        )
    return command


def selection(given: dict[str, Any]) -> Selection:
    """What the options of ``filters`` mean."""
    return Selection(**{name: tuple(given.pop(name)) for name in FILTERS})
