"""Programs that commands take: what a function of a file of the user's returns."""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, NamedTuple

import click


class Program(NamedTuple):
    """A callable, its arguments (a tuple, or a dict for keywords), and which sizes of them vary (see ``export``)."""

    function: Callable[..., Any]
    arguments: Any
    dynamic_shapes: Any = None


class ProgramError(click.ClickException):
    """What a program of the user's raises, shown as Python shows it, from the first of the file's lines on."""

    def __init__(self, file: str, error: BaseException) -> None:
        super().__init__(f"{file} raises {type(error).__name__}: {error}")
        self._shown = "".join(
            traceback.format_exception(error.with_traceback(_from(file, error.__traceback__)))
        )

    def show(self, file: Any = None) -> None:
        """Print it on standard error."""
        click.echo(self._shown, err=True, nl=False)


@contextlib.contextmanager
def running(file: str) -> Iterator[None]:
    """Run what a file of the user's has: what it raises becomes a ``ProgramError``."""
    try:
        yield
    except (click.ClickException, click.Abort):
        raise
    except Exception as error:
        raise ProgramError(file, error) from error


def _from(file: str, found: TracebackType | None) -> TracebackType | None:
    """A traceback without what called the file; whole, if the file is not in it."""
    step = found
    while step is not None and step.tb_frame.f_code.co_filename != file:
        step = step.tb_next
    return found if step is None else step


def made_program(file: str, name: str) -> Program:
    """What ``name()`` of a file returns: ``(callable, arguments)`` or ``(callable, arguments, dynamic_shapes)``.

    UsageError if it has no such function, or that returns something else; ProgramError for what it raises.
    """
    sys.path.insert(0, os.path.dirname(os.path.realpath(file)))
    with running(file):
        make = runpy.run_path(file, run_name="bench").get(name)
    if not callable(make):
        raise click.UsageError(f"{file} has no function {name!r}; it returns (callable, arguments)")
    with running(file):
        made = make()
    if not (isinstance(made, tuple) and len(made) in (2, 3) and isinstance(made[1], (tuple, list, dict))):
        raise click.UsageError(
            f"{name}() of {file} returned {type(made).__name__}, not (callable, arguments)"
        )
    return Program(*made)
