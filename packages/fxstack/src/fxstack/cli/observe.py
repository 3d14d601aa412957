"""``fxstack run``, ``explain`` and ``report``: a script whose ``torch.compile`` calls come here, and what was seen."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from fxstack.cli.output import OutputFile, as_json, say_json
from fxstack.cli.scripts import Script, run_module, run_script
from fxstack.compile import in_place_of_torch_compile
from fxstack.observing.page import html_page
from fxstack.observing.processes import observing_started_processes
from fxstack.observing.record import FORMAT, recording
from fxstack.observing.summary import explanation, processes_summary, summary

F = TypeVar("F", bound=Callable[..., Any])
_RUNS: dict[str, Any] = {"ignore_unknown_options": True, "allow_interspersed_args": False}
_REMARKABLE = ("breaks", "recompiles", "uncompiled")
_IN_PLACE = contextlib.ExitStack()
"""Holds ``torch.compile`` replaced until the process ends, where functions run that a script has registered."""
atexit.register(_IN_PLACE.close)  # after those functions, and while torch is still there


def _script(command: F) -> F:
    """The arguments of a command that runs a script."""
    for decorate in (
        click.argument("arguments", nargs=-1, type=click.UNPROCESSED),
        click.argument("script", type=Script()),
        click.option(
            "--fresh", is_flag=True, help="use an empty cache, so that everything is compiled and seen"
        ),
        click.option("--times", is_flag=True, help="time each kernel and library call of compiled graphs"),
        click.option(
            "-m", "module", is_flag=True, is_eager=True, help="SCRIPT is a module's name, as for python -m"
        ),
    ):
        command = decorate(command)
    return command


@click.command(context_settings=_RUNS, short_help="Run SCRIPT under fxstack; a summary at the end.")
@_script
@click.option("--quiet", is_flag=True, help="say nothing at the end")
@as_json
def run(
    script: str,
    arguments: Sequence[str],
    module: bool,
    fresh: bool,
    times: bool,
    quiet: bool,
    as_json: bool,
) -> Callable[[], int]:
    """Run SCRIPT as python would; its torch.compile calls use fxstack. A summary follows on standard error.

    With --json the last line of standard output is the whole record. Exit status: the script's.
    """

    def act() -> int:
        status, data = _observed(script, arguments, module, fresh, times)
        if as_json:
            say_json(data)
        elif not quiet:
            for text in (summary(data), *processes_summary(data)):
                click.echo(click.style("fxstack: ", bold=True) + text, err=True)
            if any(one[name] for one in (data, *data["processes"]) for name in _REMARKABLE):
                click.echo(_more("-m " if module else "", script, arguments), err=True)
        return status

    return act


def _more(options: str, script: str, arguments: Sequence[str]) -> str:
    """The commands that say more than the summary."""
    words = options + shlex.join([script, *arguments])
    return f"more: fxstack explain {words}  (as text)\n      fxstack report --fresh {words}  (as a page)"


@click.command(context_settings=_RUNS, short_help="Run SCRIPT; print breaks, graphs, guards.")
@_script
@click.option("--guards", is_flag=True, help="print each guard, and not only how many there are")
@click.option(
    "-o",
    "--output",
    type=OutputFile(),
    help="write there, not to standard output",
)
@as_json
def explain(
    script: str,
    arguments: Sequence[str],
    module: bool,
    fresh: bool,
    times: bool,
    guards: bool,
    output: Path | None,
    as_json: bool,
) -> Callable[[], int]:
    """Run SCRIPT, then print the summary, and frame by frame each graph, graph break, and reason for compiling again.

    Exit status: the script's.
    """

    def act() -> int:
        status, data = _observed(script, arguments, module, fresh, times)
        text = json.dumps(data) if as_json else explanation(data, guards=guards)
        if output is None:
            click.echo(text)
        else:
            output.write_text(text + "\n", encoding="utf-8")
        return status

    return act


@click.command(context_settings=_RUNS, short_help="Run SCRIPT; write one HTML page.")
@_script
@click.option(
    "-o",
    "--output",
    default="fxstack-report.html",
    show_default=True,
    type=OutputFile(),
)
@as_json
def report(
    script: str, arguments: Sequence[str], module: bool, fresh: bool, times: bool, output: Path, as_json: bool
) -> Callable[[], int]:
    """Run SCRIPT, then write one HTML file that shows what was compiled, and needs no network.

    SCRIPT may also be a record that explain --json has written. Graphs and kernels that come out of the cache are not
    in it: --fresh compiles everything. Exit status: the script's.
    """

    stored = _stored(script) if script.endswith(".json") and not module else None

    def act() -> int:
        status, data = 0, stored
        if data is None:
            status, data = _observed(script, arguments, module, fresh, times)
        output.write_text(html_page(data), encoding="utf-8")
        others = [_page_of_process(output, one) for one in data.get("processes", ())]
        if as_json:
            say_json({"page": str(output), "processes": list(map(str, others)), "status": status})
        else:
            for page in (output, *others):
                click.echo(f"fxstack: {page}", err=True)
        return status

    return act


def _page_of_process(output: Path, data: Mapping[str, Any]) -> Path:
    """Write the page of a process that the script started beside the script's."""
    page = output.with_name(f"{output.stem}-{data['process']}{output.suffix}")
    page.write_text(html_page(data), encoding="utf-8")
    return page


def _stored(file: str) -> Any:
    """A record that was written as JSON."""
    try:
        data = json.loads(Path(file).read_text(encoding="utf-8"))
    except (RecursionError, ValueError) as error:
        raise click.UsageError(f"{file} is not JSON: {error}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise click.UsageError(
            f"{file} is not a record of this version; write it with fxstack explain --json"
        )
    return data


def _observed(
    script: str, arguments: Sequence[str], module: bool, fresh: bool, times: bool
) -> tuple[int, dict[str, Any]]:
    """The status of a script and the record of it, in which ``processes`` are those of processes that it started."""
    given = list(arguments[1:] if arguments[:1] == ("--",) else arguments)
    with contextlib.ExitStack() as stack:
        if fresh:
            os.environ["FXSTACK_CACHE_DIR"] = stack.enter_context(tempfile.TemporaryDirectory())
        _IN_PLACE.enter_context(in_place_of_torch_compile())
        record = stack.enter_context(recording(times=times))
        started = stack.enter_context(observing_started_processes(times=times))
        status = (run_module if module else run_script)(script, given)
        return status, {**record.data(), "processes": started.records()}
