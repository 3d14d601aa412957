"""Programs that commands take: what a function of a file of the user's returns."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import click


class Program(NamedTuple):
    """A callable, its arguments (a tuple, or a dict for keywords), and which sizes of them vary (see ``export``)."""

    function: Callable[..., Any]
    arguments: Any
    dynamic_shapes: Any = None


def made_program(file: str, name: str) -> Program:
    """What ``name()`` of a file returns: ``(callable, arguments)`` or ``(callable, arguments, dynamic_shapes)``."""
    sys.path.insert(0, os.path.dirname(os.path.realpath(file)))
    make = runpy.run_path(file, run_name="bench").get(name)
    if not callable(make):
        raise click.UsageError(f"{file} has no function {name!r}; it returns (callable, arguments)")
    made = make()
    if not (isinstance(made, tuple) and len(made) in (2, 3) and isinstance(made[1], (tuple, list, dict))):
        raise click.UsageError(
            f"{name}() of {file} returned {type(made).__name__}, not (callable, arguments)"
        )
    return Program(*made)
