"""Programs that commands take: what a function of a file of the user's returns."""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
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
    made = _made(file, name)
    if not _is_program(made):
        raise _other_than(file, name, made, "(callable, arguments)")
    return Program(*made)


def made_programs(file: str, name: str) -> Mapping[str, Program]:
    """The same by the names of entry points, of which ``name()`` returns a dict; what is one program is ``forward``."""
    made = _made(file, name)
    given = made if isinstance(made, dict) else {"forward": made}
    if not given or not all(isinstance(key, str) and _is_program(one) for key, one in given.items()):
        raise _other_than(file, name, made, "(callable, arguments), or a dict of these by names")
    return {key: Program(*one) for key, one in given.items()}


def _other_than(file: str, name: str, made: Any, wanted: str) -> click.UsageError:
    found = f"a {type(made).__name__}"
    if isinstance(made, dict):
        found = f"a dict with {', '.join(f'{key!r}: {type(one).__name__}' for key, one in made.items()) or 'nothing'}"
    return click.UsageError(f"{name}() of {file} returned {found}, not {wanted}")


def _is_program(made: Any) -> bool:
    return isinstance(made, tuple) and len(made) in (2, 3) and isinstance(made[1], (tuple, list, dict))


def _made(file: str, name: str) -> Any:
    sys.path.insert(0, os.path.dirname(os.path.realpath(file)))
    with running(file):
        make = runpy.run_path(file, run_name="bench").get(name)
    if not callable(make):
        raise click.UsageError(f"{file} has no function {name!r}; it returns (callable, arguments)")
    with running(file):
        return make()
