"""Finds names of test libraries in the packages: what a program is tested with must make no difference to them.

Modules that are themselves there for tests (the conformance suite, the checks of shape rules) are the exceptions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from source_check import check, violations_of

LIBRARIES = (
    "pytest",
    "_pytest",
    "unittest",
    "doctest",
    "hypothesis",
    "nose",
    "expecttest",
    "torch.testing",
    "numpy.testing",
)
"""Top-level packages, and packages of torch's and numpy's."""

EXEMPT = (
    "packages/fx-interface/src/fx_interface/conformance/",
    "packages/primtorch-decomps/src/primtorch_decomps/testing.py",
)
"""Files that tests import, and nothing else."""

_NAMED = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, LIBRARIES))})(?!\w)")


def names(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of each mention in Python source text: in an import, as a dotted name, in a string."""
    for node in ast.walk(ast.parse(source)):
        for text in _texts(node):
            found = _NAMED.search(text)
            if found is not None:
                yield getattr(node, "lineno", 0), found[1]


def _texts(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import(names=aliases):
            yield from (alias.name for alias in aliases)
        case ast.ImportFrom(module=str(module), names=aliases, level=0):
            yield from (f"{module}.{alias.name}" for alias in aliases)
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            yield f"{owner}.{name}"
        case ast.Constant(value=str(text)):
            yield text


def violations() -> list[str]:
    """Every mention in the packages, as ``path:line: name``."""
    return violations_of(names, EXEMPT)


def main(argv: Sequence[str] | None = None) -> int:
    """Print what was found; the exit status is 1 if anything was."""
    return check(__doc__, violations(), "no package names a test library", argv)


if __name__ == "__main__":
    raise SystemExit(main())
