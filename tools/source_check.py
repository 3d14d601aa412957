"""What the checks of the packages' source text share: a walk over all files, and a command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from workspace import PACKAGES, ROOT

Find = Callable[[str], Iterable[tuple[int, str]]]
"""Line and name of each violation in a file's text."""


def violations_of(find: Find, exempt: tuple[str, ...], root: Path = ROOT) -> list[str]:
    """What ``find`` finds in the packages, as ``path:line: name``, but for paths that begin as one of ``exempt``."""
    found: list[str] = []
    for package in PACKAGES:
        for path in sorted(package.source.rglob("*.py")):
            shown = path.relative_to(root).as_posix()
            if not shown.startswith(exempt):
                found.extend(f"{shown}:{line}: {name}" for line, name in find(path.read_text()))
    return found


def check(description: str | None, found: list[str], none: str, argv: Sequence[str] | None = None) -> int:
    """Print what was found, or ``none``; the exit status is 1 if anything was."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--check", action="store_true", help="the default, named for symmetry with the other tools"
    )
    parser.parse_args(argv)
    print("\n".join(found) if found else none)
    return 1 if found else 0
