"""``python -m release_check``: builds, checks and tries all distributions; what nox calls ``release-check``."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bytecode_tests import interpreter as found_interpreter
from check_wheels import problems_of
from workspace import BY_NAME, PACKAGES, ROOT, Package

from .environments import Place, loads, tried
from .outcomes import Outcome, Verdict, table, write
from .ranges import PYTHONS, TORCHES, lowest, outside_of_ranges
from .torches import folder_with

DIST = ROOT / "dist"
Words = list[str | Path]
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status is 1 if anything failed, or with ``--all`` if anything could not be run."""
    parser = argparse.ArgumentParser(prog="release_check", description=__doc__)
    parser.add_argument("--python", nargs="*", default=list(PYTHONS), choices=PYTHONS)
    parser.add_argument("--torch", nargs="*", default=list(TORCHES), choices=TORCHES)
    parser.add_argument("--alone", nargs="*", choices=list(BY_NAME), help="try these alone (default: each)")
    parser.add_argument(
        "--download", action="store_true", help="install missing versions of torch (gigabytes)"
    )
    parser.add_argument("--all", action="store_true", help="what cannot be run is a failure")
    options = parser.parse_args(argv)
    outcomes: list[Outcome] = []
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RELEASE_CHECK_FOLDER"] = folder
        for outcome in _outcomes(options):
            print(
                f"{outcome.verdict:8} {outcome.what}, CPython {outcome.python}, torch {outcome.torch}",
                flush=True,
            )
            if outcome.verdict == "failed":
                print(outcome.text, flush=True)
            outcomes.append(outcome)
    write(outcomes, DIST)
    print(table(outcomes))
    verdicts = {outcome.verdict for outcome in outcomes}
    return int("failed" in verdicts or (options.all and "not run" in verdicts))


def _outcomes(options: argparse.Namespace) -> Iterator[Outcome]:
    problems = outside_of_ranges()
    yield _general("the declared ranges are those that are tried", problems)
    for package in PACKAGES:
        build: Words = [
            sys.executable,
            "-m",
            "build",
            "--quiet",
            "--no-isolation",
            "--outdir",
            DIST,
            package.folder,
        ]
        yield _command(f"{package.name}: sdist, and a wheel from it", build)
    yield _general(
        "what the distributions hold", [text for package in PACKAGES for text in problems_of(package, DIST)]
    )
    files = sorted(path for path in DIST.iterdir() if path.suffix in {".whl", ".gz"})
    yield _command("twine check", [sys.executable, "-m", "twine", "check", "--strict", *files])
    for python in options.python:
        yield from _on(python, options)


def _on(python: str, options: argparse.Namespace) -> Iterator[Outcome]:
    interpreter = Path(sys.executable) if python == HERE else found_interpreter(python)
    if interpreter is None:
        yield Outcome(
            "everything", python, "any", "any", "not run", f"no CPython {python} with its headers here"
        )
        return
    if python != HERE:
        yield from _native_wheels(python, interpreter)
    wheels = {package.name: wheel for package in PACKAGES if (wheel := _wheel(package, python)) is not None}
    if len(wheels) != len(PACKAGES):
        return
    with_torch = False
    for torch in options.torch:
        usual = python == HERE and torch == TORCHES[-1]
        folder = folder_with(python, torch, interpreter, options.download or usual)
        if folder is None:
            text = "this torch is not installed here, and has no small build to install (--download)"
            yield Outcome("everything", python, torch, "any", "not run", text)
            continue
        with_torch = True
        yield from _with(Place(python, interpreter, torch, folder), wheels, options.alone)
    if not with_torch:
        place = Place(python, interpreter, "none", None)
        yield from (
            loads(place, package, wheels[package.name]) for package in PACKAGES if _is_native(package)
        )


def _with(place: Place, wheels: dict[str, Path], alone: list[str] | None) -> Iterator[Outcome]:
    """Together and alone, with the newest dependencies, and with the oldest where there are any."""
    names = [package.name for package in PACKAGES]
    for group in (names, *([name] for name in names if alone is None or name in alone)):
        yield tried(place, group, wheels, {})
        packages = PACKAGES if group is names else [one for one in PACKAGES if one.name in group]
        if oldest := lowest(packages, place.python):
            yield tried(place, group, wheels, oldest)


def _native_wheels(python: str, interpreter: Path) -> Iterator[Outcome]:
    """Wheels with C code for another CPython, each from its sdist, with the build tools that it declares."""
    for package in PACKAGES:
        if _is_native(package):
            sdist = DIST / f"{package.name.replace('-', '_')}-{package.version}.tar.gz"
            pip: Words = [
                interpreter,
                "-m",
                "pip",
                "wheel",
                "--quiet",
                "--no-deps",
                "--wheel-dir",
                DIST,
                sdist,
            ]
            yield _command(f"{package.name}: a wheel from the sdist", pip, python)
            yield _general(f"what {package.name}'s wheels hold", problems_of(package, DIST), python)


def _wheel(package: Package, python: str) -> Path | None:
    tag = f"cp{python.replace('.', '')}-*" if _is_native(package) else "py3-none-any"
    found = sorted(DIST.glob(f"{package.name.replace('-', '_')}-{package.version}-{tag}.whl"))
    return found[0] if found else None


def _is_native(package: Package) -> bool:
    return (package.folder / "hatch_build.py").exists()


def _general(what: str, problems: Sequence[str], python: str = HERE) -> Outcome:
    verdict: Verdict = "failed" if problems else "passed"
    return Outcome(what, python, "none", "none", verdict, "\n".join(problems))


def _command(what: str, command: Sequence[str | Path], python: str = HERE) -> Outcome:
    words = [str(part) for part in command]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return _general(what, [done.stdout[-3000:]] if done.returncode else [], python)


if __name__ == "__main__":
    sys.exit(main())
