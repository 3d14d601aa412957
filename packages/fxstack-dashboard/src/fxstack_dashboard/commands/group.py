"""The group of the commands, and how their errors reach the user."""

from __future__ import annotations

import importlib
from typing import Any

import click

from fx_interface.errors import StackError

COMMANDS = {
    "bisect": "fxstack_dashboard.commands.bisect:bisect",
    "check": "fxstack_dashboard.commands.judge:check",
    "compare": "fxstack_dashboard.commands.judge:compare",
    "merge": "fxstack_dashboard.commands.database:merge",
    "run": "fxstack_dashboard.commands.run:run",
    "runs": "fxstack_dashboard.commands.database:runs",
    "show": "fxstack_dashboard.commands.show:show",
    "site": "fxstack_dashboard.commands.site:site",
    "suites": "fxstack_dashboard.commands.show:suites",
}
"""Each command's module and name there, loaded when it is used."""


class _Refused(click.ClickException):
    """The command cannot be done."""

    exit_code = 2


class _Commands(click.Group):
    """The commands of the table; an error with a code is shown without a traceback, with exit status 2."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except StackError as error:
            raise _Refused(str(error)) from error


@click.group(cls=_Commands, no_args_is_help=True)
def dashboard() -> None:
    """Compare backends on suites of models, keep the results, and show them as a static site.

    Exit status of all commands: 0, 1 if the answer is no (a row fails, something became worse), 2 if the command
    cannot be done.
    """
