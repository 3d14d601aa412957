"""The command line: ``fxstack doctor`` and ``fxstack cache``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from fxstack.cli.doctor import checks
from fxstack.options import default_cache_dir
from inductor_codegen.cache import ArtifactStore


def main(argv: Sequence[str] | None = None) -> int:
    """Parse and run one command; the exit status is 1 when a check of ``doctor`` fails."""
    parser = argparse.ArgumentParser(prog="fxstack", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("doctor", help="say what this machine can compile, and what is missing")
    cache = commands.add_parser("cache", help="say where artifacts are kept and how much they take")
    cache.add_argument("--clear", action="store_true", help="remove every artifact")
    arguments = parser.parse_args(argv)
    return _doctor() if arguments.command == "doctor" else _cache(clear=arguments.clear)


def _doctor() -> int:
    table = Table("check", "found", "to do")
    failed = False
    for check in checks():
        failed |= check.action != ""
        table.add_row(check.name, check.found, check.action)
    Console().print(table)
    return 1 if failed else 0


def _cache(*, clear: bool) -> int:
    store = ArtifactStore(default_cache_dir())
    if clear:
        store.clear()
    Console().print(f"{store.folder}: {len(store.keys())} artifacts, {store.size() / 2**20:.1f} MiB")
    return 0
