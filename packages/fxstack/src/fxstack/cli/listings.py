"""``fxstack backends`` and ``fxstack ops``: what is installed, and what becomes of each operator."""

from __future__ import annotations

import click

from fx_interface.errors import StackError
from fx_interface.plugins import list_backends, load_backend
from fxstack.cli.output import as_json, say_json, say_table


@click.command(short_help="Installed backends, and whether each loads.")
@as_json
def backends(as_json: bool) -> int:
    """List the backends that compile(backend=...) takes, and who installed each.

    Exit status: 0, or 1 if one of them cannot be loaded.
    """
    rows = []
    for info in list_backends():
        try:
            load_backend(info.name)
            state = "ok"
        except StackError as error:
            state = f"{error.what}; {error.action}" if error.action else error.what
        rows.append((info.name, info.distribution, info.value, state))
    if as_json:
        names = ("name", "distribution", "object", "state")
        say_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        say_table(("name", "from", "object", "state"), rows)
    return int(any(row[3] != "ok" for row in rows))


@click.command(short_help="Operators by PATTERN, and what becomes of each.")
@click.argument("pattern", default="")
@as_json
def ops(pattern: str, as_json: bool) -> int:
    """List operators whose name contains PATTERN, and what becomes of each.

    decomposed: onto primitives, which are fused into kernels. library: torch's own kernel is called; the reason or the
    rule for its result is named. Operators that are not listed are library calls too.

    Exit status: 0, or 1 if none is listed.
    """
    from primtorch_decomps import DECOMPOSITIONS, RULES  # all formulas are loaded to be listed
    from primtorch_decomps.library_calls import library_reason

    rows = [(str(op), "decomposed", entry.family) for op, entry in DECOMPOSITIONS.items()]
    rows += [
        (str(op), "library", library_reason(str(op)) or f"rule of {rule.__module__.rpartition('.')[2]}")
        for op, rule in RULES.items()
        if op not in DECOMPOSITIONS
    ]
    shown = sorted(row for row in rows if pattern in row[0])
    if as_json:
        say_json([dict(zip(("operator", "how", "by"), row, strict=True)) for row in shown])
    else:
        say_table(("operator", "how", "by"), shown)
    return int(not shown)
