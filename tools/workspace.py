"""What the repository's own metadata say of its packages: names, folders, versions and dependencies."""

from __future__ import annotations

import hashlib
import re
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Package:
    """One distribution of the repository; ``folder`` holds its pyproject.toml."""

    folder: Path

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """The whole pyproject.toml."""
        return tomllib.loads((self.folder / "pyproject.toml").read_text())

    @property
    def name(self) -> str:
        """The distribution's name."""
        return str(self.metadata["project"]["name"])

    @property
    def module(self) -> str:
        """The name it is imported by: that of the folder whose ``__about__.py`` states its version."""
        return Path(self.metadata["tool"]["hatch"]["version"]["path"]).parent.name

    @property
    def source(self) -> Path:
        """The folder of its Python code."""
        return self.folder / "src" / self.module

    @property
    def version(self) -> str:
        """Its version, read from ``__about__.py`` without importing it."""
        text = (self.source / "__about__.py").read_text()
        found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
        if found is None:
            raise ValueError(f"{self.source}/__about__.py states no version")
        return found[1]

    @property
    def requirements(self) -> dict[str, str]:
        """Declared dependencies: name to version range."""
        declared = (
            re.match(r"([A-Za-z0-9_.-]+)(.*)", line) for line in self.metadata["project"]["dependencies"]
        )
        return {found[1]: found[2].strip() for found in declared if found is not None}


PACKAGES: tuple[Package, ...] = tuple(
    Package(path.parent) for path in sorted((ROOT / "packages").glob("*/pyproject.toml"))
)
"""Every package, by name."""

BY_NAME: dict[str, Package] = {package.name: package for package in PACKAGES}
"""Every package under its name."""


@dataclass(frozen=True)
class Tested:
    """Versions of CPython and torch that the tests have run on together, by which session of nox, and when."""

    python: str
    torch: str
    session: str
    outcome: str


TESTED: tuple[Tested, ...] = tuple(
    Tested(**row) for row in tomllib.loads((ROOT / "tools" / "tested.toml").read_text())["tested"]
)
"""Every row of tools/tested.toml; the first is what CI runs."""


def closure(name: str) -> list[Package]:
    """The package and every package of the repository that it needs, needed ones first."""
    ordered: dict[str, Package] = {}

    def visit(current: str) -> None:
        for needed in BY_NAME[current].requirements:
            if needed in BY_NAME and needed not in ordered:
                visit(needed)
        ordered[current] = BY_NAME[current]

    visit(name)
    return list(ordered.values())


def fingerprint(extra: Iterable[str] = ()) -> str:
    """A hash of all that an editable installation depends on: metadata, build hooks and C sources."""
    digest = hashlib.sha256("\n".join([sys.version, *extra]).encode())
    for package in PACKAGES:
        built_from = [package.folder / "pyproject.toml", package.folder / "hatch_build.py"]
        built_from += sorted((package.folder / "csrc").rglob("*.[ch]*"))
        for path in built_from:
            if path.exists():
                digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()
