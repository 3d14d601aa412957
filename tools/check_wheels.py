"""Checks built wheels: one a package, with licence, typing marker and, where there is C code, the library."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

from workspace import PACKAGES, Package


def problems_of(package: Package, folder: Path) -> list[str]:
    """What is wrong with the package's wheel in ``folder``."""
    stem = f"{package.module}-{package.version}-"
    found = sorted(folder.glob(f"{stem}*.whl"))
    if len(found) != 1:
        return [f"{package.name}: {len(found)} wheels named {stem}*.whl in {folder}"]
    (wheel,) = found
    names = zipfile.ZipFile(wheel).namelist()
    problems = []
    if f"{package.module}/py.typed" not in names:
        problems.append(f"{wheel.name} lacks py.typed")
    if not any(name.endswith("/licenses/LICENSE") for name in names):
        problems.append(f"{wheel.name} lacks the licence")
    libraries = [name for name in names if name.endswith(".so")]
    native = (package.folder / "hatch_build.py").exists()
    if native and len(libraries) != 1:
        problems.append(f"{wheel.name} has {len(libraries)} libraries, not 1: {libraries}")
    if native == wheel.name.endswith("-none-any.whl"):
        problems.append(f"{wheel.name} is tagged for the wrong platforms")
    if not native and libraries:
        problems.append(f"{wheel.name} carries libraries, but the package has no C code: {libraries}")
    return problems


def main(argv: Sequence[str]) -> int:
    """The exit status is 1 if a wheel is missing or wrong."""
    (folder,) = argv
    problems = [problem for package in PACKAGES for problem in problems_of(package, Path(folder))]
    print("\n".join(problems) if problems else f"{len(PACKAGES)} wheels, all as they should be")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
