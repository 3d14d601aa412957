"""A clean environment for some wheels: installed, checked, and their smoke tests run outside of the repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from workspace import PACKAGES, Package, closure

from .outcomes import Outcome, Verdict
from .ranges import constraints

INSIDE = """
import importlib, importlib.util, sys
sys.path[:] = [path for path in sys.path if path]
for name in {modules!r}:
    where = importlib.import_module(name).__file__
    assert where.startswith({site!r}), f"{{name}} comes from {{where}}"
for name in {absent!r}:
    assert importlib.util.find_spec(name) is None, f"{{name}} is here, although nothing that is installed declares it"
"""


@dataclass(frozen=True, slots=True)
class Place:
    """An interpreter, and the folder that its torch lies in (None: there is no torch)."""

    python: str
    interpreter: Path
    torch: str
    torch_folder: Path | None


class StepFailed(Exception):
    """A command ended with another status than 0; the text is the end of its output."""


def tried(
    place: Place, names: Sequence[str], wheels: Mapping[str, Path], versions: Mapping[str, str]
) -> Outcome:
    """Make an environment with these packages and what they need, and run the smoke test of each package named.

    ``versions`` are those of other dependencies; what it does not name is the newest."""
    what = names[0] if len(names) == 1 else "all together"
    started = time.monotonic()
    folder = Path(os.environ["RELEASE_CHECK_FOLDER"]) / re.sub(r"\W+", "-", f"{what}-{place.python}")
    shutil.rmtree(folder, ignore_errors=True)
    numbers = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    dependencies = f"lowest: {numbers}" if versions else "newest"
    try:
        _try(place, folder, names, wheels, versions)
    except StepFailed as failure:
        outcome = Outcome(what, place.python, place.torch, dependencies, "failed", str(failure))
    else:
        seconds = time.monotonic() - started
        outcome = Outcome(what, place.python, place.torch, dependencies, "passed", seconds=seconds)
    shutil.rmtree(folder, ignore_errors=True)
    return outcome


def _try(
    place: Place, folder: Path, names: Sequence[str], wheels: Mapping[str, Path], versions: Mapping[str, str]
) -> None:
    packages = list({one.name: one for name in names for one in closure(name)}.values())
    _step(
        [sys.executable, "-m", "virtualenv", "-q", "--no-download", "-p", place.interpreter, folder / "env"]
    )
    site = folder / "env" / f"lib/python{place.python}/site-packages"
    (site / "shared_torch.pth").write_text(f"{place.torch_folder}\n")
    (folder / "constraints.txt").write_text(constraints(versions))
    python = folder / "env" / "bin" / "python"
    install: list[str | Path] = [
        "install",
        "--quiet",
        "--only-binary",
        ":all:",
        "--constraint",
        folder / "constraints.txt",
    ]
    _step([python, "-m", "pip", *install, *(wheels[one.name] for one in packages)])
    _step([python, "-m", "pip", "check"])
    modules = [one.module for one in packages]
    absent = [one.module for one in PACKAGES if one.module not in modules]
    program = INSIDE.format(modules=modules, absent=absent, site=str(site))
    _step([python, "-I", "-c", program], folder)
    for name in names:
        (package,) = (one for one in packages if one.name == name)
        shutil.copy(smoke_test(package), folder / "smoke.py")
        _step([python, "-I", folder / "smoke.py"], folder)


def smoke_test(package: Package) -> Path:
    """The program that says, of an installed package, whether it works at all."""
    return package.folder / "tests" / "smoke.py"


def loads(place: Place, package: Package, wheel: Path) -> Outcome:
    """Where there is no torch for an interpreter: its own wheel can be installed, and the extension in it be loaded,
    which may then say that it needs torch."""
    folder = Path(os.environ["RELEASE_CHECK_FOLDER"]) / f"extension-{place.python}"
    shutil.rmtree(folder, ignore_errors=True)
    program = (
        "import glob, sys; from importlib.machinery import ExtensionFileLoader as L;"
        f"(file,) = glob.glob({str(folder)!r} + '/{package.module}/*.so');"
        f"name = '{package.module}.' + file.split('/')[-1].split('.')[0];"
        "from importlib.util import module_from_spec as m, spec_from_file_location as s;"
        "spec = s(name, file)\n"
        "try: spec.loader.exec_module(m(spec))\n"
        "except ImportError as error: assert 'import torch first' in str(error), error"
    )
    verdict: Verdict = "passed"
    text = ""
    try:
        pip: list[str | Path] = ["install", "--quiet", "--no-deps", "--target", folder, wheel]
        _step([place.interpreter, "-m", "pip", *pip])
        _step([place.interpreter, "-I", "-c", program])
    except StepFailed as failure:
        verdict, text = "failed", str(failure)
    shutil.rmtree(folder, ignore_errors=True)
    what = f"{package.name}: the extension loads"
    return Outcome(what, place.python, "none", "none", verdict, text)


def _step(command: Sequence[str | Path], folder: Path | None = None) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FXSTACK_", "PYTHON"))}
    cache = {} if folder is None else {"FXSTACK_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=kept | cache | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        words = " ".join(str(part) for part in command if "\n" not in str(part))
        raise StepFailed(f"{words[:300]}\n{done.stdout[-3000:]}")
