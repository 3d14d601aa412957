"""The arrows between the packages: each may import exactly the siblings that its metadata declare, or fewer.

Drives import-linter with contracts made from the metadata, so that the two cannot disagree; and holds the metadata to
the table of the architecture.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from workspace import BY_NAME, PACKAGES, Package

ALLOWED: dict[str, frozenset[str]] = {
    "fx-interface": frozenset(),
    "guards": frozenset({"fx-interface"}),
    "dynamo-capture": frozenset({"guards", "fx-interface"}),
    "aot-autograd": frozenset({"fx-interface"}),
    "primtorch-decomps": frozenset({"fx-interface"}),
    "inductor-codegen": frozenset({"fx-interface"}),
    "fxstack-artifact": frozenset(),
    "fxstack": frozenset(BY_NAME) - {"fxstack", "fxstack-dashboard"},
    "fxstack-dashboard": frozenset({"fx-interface", "fxstack"}),
}
"""Which siblings a package may need, as docs/architecture.md has it."""


def wrong_dependencies() -> list[str]:
    """Declared dependencies that the architecture does not allow."""
    return [
        f"{package.name} declares {name}, which the architecture does not allow"
        for package in PACKAGES
        for name in package.requirements
        if name in BY_NAME and name not in ALLOWED[package.name]
    ]


def contracts() -> str:
    """import-linter's configuration: for each package, the siblings it must not import."""
    lines = ["[importlinter]", "root_packages ="]
    lines += [f"    {package.module}" for package in PACKAGES]
    for package in PACKAGES:
        forbidden = [other.module for other in PACKAGES if _is_forbidden(package, other)]
        if forbidden:
            lines += ["", f"[importlinter:contract:{package.module}]"]
            lines += [f"name = {package.name} imports only what it declares", "type = forbidden"]
            lines += ["source_modules =", f"    {package.module}", "forbidden_modules ="]
            lines += [f"    {module}" for module in forbidden]
            if "fxstack" in package.requirements:
                lines.append("allow_indirect_imports = True")  # what the product imports is its own affair
    return "\n".join(lines) + "\n"


def _is_forbidden(package: Package, other: Package) -> bool:
    return other != package and other.name not in package.requirements


def run_linter(configuration: str, sources: Sequence[Path]) -> int:
    """import-linter's exit status for these contracts, with its report printed."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "contracts.ini"
        file.write_text(configuration)
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, sources))}
        command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"]
        command += ["--config", str(file), "--no-cache"]
        return subprocess.run(command, env=environment, check=False, cwd=folder).returncode


def main(argv: Sequence[str] | None = None) -> int:
    """Check the metadata, then the imports; the exit status is 1 if either is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="the default, named for symmetry with the other tools"
    )
    parser.parse_args(argv)
    wrong = wrong_dependencies()
    if wrong:
        print("\n".join(wrong))
        return 1
    return run_linter(contracts(), [package.source.parent for package in PACKAGES])


if __name__ == "__main__":
    sys.exit(main())
