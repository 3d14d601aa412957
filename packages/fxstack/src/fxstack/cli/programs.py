"""Programs that commands take: what a function of a file of the user's returns."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable
from typing import Any

import click


def made_program(file: str, name: str) -> tuple[Callable[..., Any], Any]:
    """The callable and its arguments, a tuple or a dict for keywords, that ``name()`` of a file returns."""
    sys.path.insert(0, os.path.dirname(os.path.realpath(file)))
    make = runpy.run_path(file, run_name="bench").get(name)
    if not callable(make):
        raise click.UsageError(f"{file} has no function {name!r}; it returns (callable, arguments)")
    made = make()
    if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[1], (tuple, list, dict))):
        raise click.UsageError(
            f"{name}() of {file} returned {type(made).__name__}, not (callable, arguments)"
        )
    return made
