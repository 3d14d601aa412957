"""Runs programs of real libraries compiled, on small inputs with random weights, and compares with eager and stock.

``python integration_tests/ecosystem/run.py`` runs all that is installed, each library in a process of its own,
``... run.py diffusers_denoise geometric`` some; ``--program NAME`` runs programs whose name contains the text,
``--no-times`` only compares and counts, ``--page docs/ecosystem.md`` writes the page of the documentation.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")

sys.path.insert(0, str(Path(__file__).parent))
from page import page, table
from programs import libraries, programs_of

LIMIT = 1500
"""Seconds for a library."""


def work(library: str, name: str, timed: bool, stock: bool) -> None:
    """A worker's share: one line of JSON for each program."""
    import logging
    import warnings

    import torch
    from measuring import measure

    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    for program in programs_of(library):
        if name not in program.name:
            continue
        print(json.dumps({"begin": program.name}), flush=True)
        missing = program.missing()
        outcome = (
            {"name": program.name, "left_out": f"{missing} is not installed"}
            if missing
            else asdict(measure(program, timed=timed, stock=stock))
        )
        print(json.dumps(outcome), flush=True)


def outcomes(library: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Of a library's programs; a worker that dies, or takes too long, fails the program it was at."""
    command = [sys.executable, __file__, "--worker", library, "--program", arguments.program]
    command += ["--no-times"] * arguments.no_times + ["--no-stock"] * arguments.no_stock
    lines: list[dict[str, Any]] = []
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, timeout=LIMIT, text=True, check=False)
        output, end = done.stdout, f"the process ended with status {done.returncode}"
        died = done.returncode != 0
    except subprocess.TimeoutExpired as error:
        output, end, died = (error.stdout or b"").decode(), f"took more than {LIMIT} s", True
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    found = [line for line in lines if "name" in line]
    if died:
        begun = [line["begin"] for line in lines if "begin" in line]
        found.append({"name": begun[-1] if begun else library, "failure": end})
    return [{"library": library, **line} for line in found]


def main(argv: Sequence[str]) -> int:
    """Exit status 1 if anything differs from eager."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libraries", nargs="*", help="files of the folder libraries; all by default")
    parser.add_argument("--program", default="", help="a part of the programs' names")
    parser.add_argument("--no-times", action="store_true", help="compare and count only")
    parser.add_argument("--no-stock", action="store_true", help="leave stock out")
    parser.add_argument("--page", type=Path, help="write the page of the documentation")
    parser.add_argument(
        "--json", type=Path, help="write, and first read, outcomes: libraries not run are kept"
    )
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.worker:
        work(arguments.worker, arguments.program, not arguments.no_times, not arguments.no_stock)
        return 0
    kept = json.loads(arguments.json.read_text()) if arguments.json and arguments.json.exists() else []
    rows: list[dict[str, Any]] = []
    for library in arguments.libraries or libraries():
        found = outcomes(library, arguments)
        rows += found
        print(table(found), flush=True)
        _write(_merged(kept, rows), arguments)
    return any(row.get("failure") for row in rows)


def _merged(kept: list[dict[str, Any]], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The outcomes of this run, and of earlier ones those of other programs, by library."""
    names = {(row["library"], row["name"]) for row in rows}
    others = [row for row in kept if (row["library"], row["name"]) not in names]
    return sorted([*others, *rows], key=lambda row: row["library"])


def _write(rows: list[dict[str, Any]], arguments: argparse.Namespace) -> None:
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    if arguments.page:
        arguments.page.write_text(page(rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
