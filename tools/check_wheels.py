"""Checks built wheels, and sdists where they were built: each package has its own, with the files that belong there."""

from __future__ import annotations

import base64
import configparser
import csv
import hashlib
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from workspace import PACKAGES, Package

DATA = {".html", ".js", ".css", ".json", ".pyi", ".typed"}
"""What a wheel may hold of a package besides Python files and one extension."""

NEEDED_IN_SDISTS = ("PKG-INFO", "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE")
STRAY = {"__pycache__", ".git", ".nox", ".venv", ".hypothesis", "build", "dist"}


def problems_of(package: Package, folder: Path) -> list[str]:
    """What is wrong with the package's wheels in ``folder``, one for each tag, and with its sdist."""
    stem = f"{package.name.replace('-', '_')}-{package.version}"
    wheels = sorted(folder.glob(f"{stem}-*.whl"))
    tags = [wheel.stem.removeprefix(f"{stem}-") for wheel in wheels]
    native = (package.folder / "hatch_build.py").exists()
    if not wheels or (not native and len(wheels) > 1):
        return [f"{package.name}: {len(wheels)} wheels named {stem}-*.whl in {folder}"]
    problems = [
        f"{stem}-{tag}.whl is tagged for the wrong platforms" for tag in tags if native == ("-any" in tag)
    ]
    for wheel in wheels:
        problems += [f"{wheel.name} {text}" for text in _wheel_problems(package, wheel, native)]
    sdist = folder / f"{stem}.tar.gz"
    if sdist.exists():
        problems += [f"{sdist.name} {text}" for text in _sdist_problems(package, sdist, native)]
    return problems


def _wheel_problems(package: Package, wheel: Path, native: bool) -> Iterator[str]:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        about = f"{package.name.replace('-', '_')}-{package.version}.dist-info"
        yield from _unrecorded(archive, f"{about}/RECORD", names)
        for wanted in (f"{package.module}/py.typed", f"{about}/licenses/LICENSE"):
            if wanted not in names:
                yield f"lacks {wanted}"
        libraries = [name for name in names if name.endswith(".so")]
        if len(libraries) != native:
            yield f"has {len(libraries)} libraries, not {int(native)}: {libraries}"
        inside = {path.relative_to(package.source.parent).as_posix() for path in package.source.rglob("*.py")}
        missing = sorted(inside - set(names))
        if missing:
            yield f"lacks {', '.join(missing[:5])}"
        for name in names:
            if name.split("/")[0] not in (package.module, about) or not _belongs(PurePosixPath(name), about):
                yield f"holds {name}, which does not belong there"
        text = f"{about}/entry_points.txt"
        found = _sections(archive.read(text).decode()) if text in names else {}
        if found != _declared_entry_points(package):
            yield f"has the entry points {found}, where pyproject.toml declares {_declared_entry_points(package)}"


def _belongs(path: PurePosixPath, about: str) -> bool:
    if path.parts[0] == about:
        return True
    return not STRAY & set(path.parts) and path.parts[1] != "tests" and path.suffix in DATA | {".py", ".so"}


def _unrecorded(archive: zipfile.ZipFile, record: str, names: Sequence[str]) -> Iterator[str]:
    """Files whose content is not that of RECORD, and records without a file."""
    rows = {row[0]: row[1] for row in csv.reader(archive.read(record).decode().splitlines()) if row}
    if set(rows) != set(names):
        yield f"records other files than it holds: {sorted(set(rows) ^ set(names))[:5]}"
    for name in set(rows) & set(names) - {record}:
        digest = base64.urlsafe_b64encode(hashlib.sha256(archive.read(name)).digest()).rstrip(b"=").decode()
        if rows[name] != f"sha256={digest}":
            yield f"records another content of {name}"


def _sections(text: str) -> dict[str, dict[str, str]]:
    parser = configparser.ConfigParser(delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(text)
    return {section: dict(parser[section]) for section in parser.sections()}


def _declared_entry_points(package: Package) -> dict[str, dict[str, str]]:
    project = package.metadata["project"]
    scripts = {"console_scripts": project["scripts"]} if "scripts" in project else {}
    return scripts | {group: dict(entries) for group, entries in project.get("entry-points", {}).items()}


def _sdist_problems(package: Package, sdist: Path, native: bool) -> Iterator[str]:
    with tarfile.open(sdist) as archive:
        root = sdist.name.removesuffix(".tar.gz")
        members = archive.getmembers()
    for member in members:
        path = PurePosixPath(member.name)
        if path.parts[0] != root or STRAY & set(path.parts) or path.suffix in {".so", ".o", ".pyc"}:
            yield f"holds {member.name}, which does not belong there"
        if not (member.isreg() or member.isdir()):
            yield f"holds {member.name}, which is neither a file nor a folder"
    names = {member.name.removeprefix(f"{root}/") for member in members}
    wanted = {*NEEDED_IN_SDISTS, f"src/{package.module}/py.typed"}
    if native:
        wanted |= {"hatch_build.py"}
        sources = package.folder.glob("csrc/**/*.[ch]")
        wanted |= {path.relative_to(package.folder).as_posix() for path in sources}
    yield from (f"lacks {name}" for name in sorted(wanted - names))


def main(argv: Sequence[str]) -> int:
    """The exit status is 1 if a distribution is missing or wrong."""
    (folder,) = argv
    problems = [problem for package in PACKAGES for problem in problems_of(package, Path(folder))]
    print("\n".join(problems) if problems else f"{len(PACKAGES)} packages, all as they should be")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
