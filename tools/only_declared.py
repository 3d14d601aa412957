"""Asserts, inside an environment made for one package, that no sibling is installed which the package does not need."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution

from workspace import PACKAGES, closure


def surplus(name: str) -> list[str]:
    """Siblings that can be imported, or are installed, although ``name`` does not need them."""
    needed = {package.name for package in closure(name)}
    others = [package for package in PACKAGES if package.name not in needed]
    return [
        package.name for package in others if _is_installed(package.name) or _is_importable(package.module)
    ]


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _is_importable(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def main(argv: Sequence[str]) -> int:
    """The exit status is 1 if the environment holds too much, or not the package itself."""
    (name,) = argv
    found = surplus(name)
    missing = [package.name for package in closure(name) if not _is_installed(package.name)]
    for sibling in found:
        print(f"{sibling} is here, but {name} does not declare it")
    for sibling in missing:
        print(f"{sibling} is not installed, but {name} needs it")
    return 1 if found or missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
