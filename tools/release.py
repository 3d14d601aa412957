"""Versions and changelogs from change files: ``tools/release.py plan`` shows, ``make`` writes, ``check`` is lint's.

A change file is ``packages/<package>/changes/<any name>.<kind>.md``; its text is one item of the changelog. The kind
decides the next version: ``breaking``, ``added`` or ``fixed``. towncrier assembles the changelogs; what it has no
notion of, versions and the ranges in which packages of one repository need each other, is done here.
"""

from __future__ import annotations

import argparse
import datetime
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import compatibility_table
from workspace import BY_NAME, PACKAGES, ROOT, Package, closure

KINDS = ("breaking", "added", "fixed")
NAME = re.compile(rf"[+\w-]+\.({'|'.join(KINDS)})\.md")


@dataclass(frozen=True)
class Step:
    """A release of one package. ``ranges`` are those of siblings that no longer hold the siblings' next versions."""

    package: Package
    version: str
    ranges: dict[str, str]


def change_files(package: Package) -> list[Path]:
    """The package's change files."""
    return sorted(path for path in (package.folder / "changes").glob("*") if path.name != ".gitkeep")


def is_released(package: Package) -> bool:
    """Whether the changelog has an entry with a date for the package's version."""
    text = (package.folder / "CHANGELOG.md").read_text()
    return (
        re.search(rf"^## {re.escape(package.version)} \(\d{{4}}-\d\d-\d\d\)$", text, re.MULTILINE) is not None
    )


def following(version: str, kinds: set[str]) -> str:
    """The version after one: before 1.0 a breaking change raises the second number, and any other the third."""
    major, minor, patch = (int(part) for part in version.split("."))
    if "breaking" in kinds:
        return f"{major + 1}.0.0" if major else f"0.{minor + 1}.0"
    if "added" in kinds and major:
        return f"{major}.{minor + 1}.0"
    return f"{major}.{minor}.{patch + 1}"


def span(version: str) -> str:
    """The range of versions that fit what was written for this one: 0.2.3 -> >=0.2,<0.3; 1.4.0 -> >=1.4,<2."""
    major, minor = (int(part) for part in version.split(".")[:2])
    return f">={major}.{minor},<{major + 1}" if major else f">=0.{minor},<0.{minor + 1}"


def plan() -> list[Step]:
    """What is to be released, needed packages first: it has change files, was never released, or needs other ranges."""
    steps: dict[str, Step] = {}
    every = {one.name: one for package in PACKAGES for one in closure(package.name)}
    for package in every.values():
        versions = {name: step.version for name, step in steps.items()}
        ranges = {
            name: span(versions[name])
            for name, declared in package.requirements.items()
            if name in versions and not compatibility_table.contains(declared, versions[name])
        }
        kinds = {path.name.split(".")[-2] for path in change_files(package)} | (
            {"fixed"} if ranges else set()
        )
        if not is_released(package):
            steps[package.name] = Step(package, package.version, ranges)
        elif kinds:
            steps[package.name] = Step(package, following(package.version, kinds), ranges)
    return list(steps.values())


def make(step: Step, date: str) -> None:
    """Write the version, the ranges and the changelog of one package; its change files go."""
    package = step.package
    metadata = package.folder / "pyproject.toml"
    text = metadata.read_text()
    for name, wanted in step.ranges.items():
        declared = re.escape(package.requirements[name])
        text, count = re.subn(rf'"{name}(\[\w+\])?{declared}"', rf'"{name}\1{wanted}"', text)
        if not count:
            raise ValueError(f"{metadata} does not state {name} as its metadata do")
        (package.folder / "changes").mkdir(exist_ok=True)
        (package.folder / "changes" / f"+needs-{name}.fixed.md").write_text(f"Needs {name} {wanted}.\n")
    metadata.write_text(text)
    about = package.source / "__about__.py"
    line = f'__version__ = "{step.version}"'
    about.write_text(re.sub(r'^__version__ = ".*"$', line, about.read_text(), flags=re.MULTILINE))
    (package.folder / "changes").mkdir(exist_ok=True)
    options = ["--yes", "--config", ROOT / "towncrier.toml", "--dir", package.folder, "--date", date]
    command = ["towncrier", "build", *options, "--version", step.version, "--name", package.name]
    subprocess.run([sys.executable, "-m", *map(str, command)], check=True, cwd=ROOT)
    changelog = package.folder / "CHANGELOG.md"
    changelog.write_text(joined(changelog.read_text(), step.version))


def joined(changelog: str, version: str) -> str:
    """A changelog whose items under "(unreleased)" belong to the entry of that version, just made above them."""
    text = re.sub(r"\A\s*# Changelog\s*", "# Changelog\n\n", changelog)
    older = rf"\n*^## {re.escape(version)} \(unreleased\)\n+"
    first = rf"^(## {re.escape(version)} \([\d-]+\)){older}"
    text = re.sub(first, r"\1\n\n", text, flags=re.MULTILINE)  # there were no change files
    text = re.sub(older, "\n", text, flags=re.MULTILINE)
    return re.sub(r"(?<=[^\n])\n(?=## )", "\n\n", text).rstrip() + "\n"


def problems() -> Iterator[str]:
    """What is wrong with change files."""
    for package in PACKAGES:
        for path in change_files(package):
            where = path.relative_to(ROOT)
            if not NAME.fullmatch(path.name):
                yield f"{where}: a change file is called NAME.KIND.md, where KIND is one of {', '.join(KINDS)}"
            elif not path.read_text().strip():
                yield f"{where} is empty"
            elif re.match(r"\s*[-*#]", path.read_text()):
                yield f"{where} begins as a list or heading; its text becomes one item"


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status is 1 if a change file is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("plan", "make", "check"))
    parser.add_argument("--date", default=datetime.date.today().isoformat())
    options = parser.parse_args(argv)
    wrong = list(problems())
    if wrong or options.action == "check":
        print("\n".join(wrong) if wrong else "the change files are as they should be")
        return 1 if wrong else 0
    for step in plan():
        ranges = "".join(f", needs {name} {wanted}" for name, wanted in step.ranges.items())
        before = BY_NAME[step.package.name].version if is_released(step.package) else "never released"
        print(f"{step.package.name}: {before} -> {step.version}{ranges}")
        if options.action == "make":
            make(step, options.date)
    if options.action == "make":
        subprocess.run([sys.executable, ROOT / "tools" / "compatibility_table.py"], check=True, cwd=ROOT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
