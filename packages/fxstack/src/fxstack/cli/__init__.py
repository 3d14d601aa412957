"""The command line: ``fxstack COMMAND``, one module a command; README.md lists them with their exit statuses.

Another distribution adds a command by an entry point of the group ``fxstack.commands`` that names a click command.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points

import click

from fxstack.cli.output import AS_JSON, say_error

COMMANDS = {
    "backends": "fxstack.cli.listings:backends",
    "bench": "fxstack.cli.bench:bench",
    "cache": "fxstack.cli.cache:cache",
    "compile": "fxstack.cli.artifacts:compile",
    "doctor": "fxstack.cli.doctor:doctor",
    "explain": "fxstack.cli.observe:explain",
    "inspect": "fxstack.cli.artifacts:inspect",
    "minify": "fxstack.cli.minify:minify",
    "new-key": "fxstack.cli.artifacts:new_key",
    "ops": "fxstack.cli.listings:ops",
    "report": "fxstack.cli.observe:report",
    "run": "fxstack.cli.observe:run",
    "sign": "fxstack.cli.artifacts:sign",
}
"""Each command's module and name there, loaded when it is used."""
GROUP = "fxstack.commands"
"""Entry points of other distributions' commands."""
ELSEWHERE = {"dashboard": "fxstack-dashboard"}
"""Commands that a distribution of this repository adds, which may not be installed."""


class _Commands(click.Group):
    """The commands of the table, and those that other distributions add."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*COMMANDS, *ELSEWHERE, *entry_points(group=GROUP).names})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return _added(cmd_name)
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            if not near:
                raise
            raise click.UsageError(f"{error.message} Did you mean {near[0]!r}?", ctx) from None


def _added(name: str) -> click.Command | None:
    """A command of another distribution, or one that says which distribution has it."""
    for entry in entry_points(group=GROUP, name=name):
        added: click.Command = entry.load()
        return added
    distribution = ELSEWHERE.get(name)
    if distribution is None:
        return None

    def explain(arguments: Sequence[str]) -> None:
        raise click.ClickException(
            f"{name!r} is in a package of its own: pip install {distribution}, and this command is there"
        )

    unknown = {"ignore_unknown_options": True, "help_option_names": []}
    return click.Command(
        name,
        callback=explain,
        params=[click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)],
        short_help=f"(pip install {distribution})",
        context_settings=unknown,
    )


@click.command(cls=_Commands, no_args_is_help=True)
@click.version_option(package_name="fxstack", message="%(package)s %(version)s")
def commands() -> None:
    """A compiler for PyTorch programs: run scripts under it, and see what it does with them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit status. 2: the command line is wrong. What it fails with is on standard error, and with
    --json a document besides."""
    asked: dict[str, bool] = {}
    try:
        answer = commands.main(argv, prog_name="fxstack", standalone_mode=False, obj=asked)
    except click.ClickException as error:
        error.show()
        if asked.get(AS_JSON):
            say_error(error)
        return error.exit_code
    except click.Abort:
        print("stopped", file=sys.stderr)
        return 130
    # a script runs when the parser is done: then what it raises is not mistaken for the command line's
    result = answer() if callable(answer) else answer
    return result if isinstance(result, int) else 0
