"""How the packages of a commit are made ready, and what its measurements then run with.

A repository with ``packages/*/src`` (this one) has its packages before all others on the path; those with C code are
built in place, by an editable installation into an environment of the bisection's own, when their sources have changed
since the last commit that was measured. Another repository has its root, and ``src`` if there is one, on the path. A
command of the user's (``--setup``) replaces all this, and runs in the checkout.
"""

from __future__ import annotations

import os
import site
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

import fxstack_dashboard
from fxstack_dashboard.bisecting.checkout import Checkout

_BUILT_FROM = (".c", ".cc", ".cpp", ".h", "pyproject.toml", "hatch_build.py")
_LIMIT = 900


class Environment:
    """The environment of a bisection, in a folder of its own."""

    def __init__(self, checkout: Checkout, folder: Path, setup: str | None) -> None:
        self._checkout = checkout
        self._folder = folder
        self._setup = setup
        self._built = ""
        self._python = sys.executable
        self._harness = folder / "harness"
        self._harness.mkdir()
        source = Path(str(fxstack_dashboard.__file__)).resolve().parent
        (self._harness / source.name).symlink_to(source)  # nothing else of where it is installed

    @property
    def python(self) -> str:
        """The interpreter that measures."""
        return self._python

    def prepare(self, commit: str) -> str:
        """Make the checked out commit ready; why that failed, or an empty text."""
        if self._setup is not None:
            return _failure(self._setup, self._checkout.folder, shell=True)
        if not self._native() or not self._needs_build(commit):
            return ""
        self._make_environment()
        folders = sorted(path.parent for path in self._native())
        command = [sys.executable, "-m", "pip", "--python", self._python, "install", "--quiet"]
        command += ["--no-build-isolation", "--no-deps"]
        why = _failure([*command, *(part for f in folders for part in ("-e", str(f)))], self._checkout.folder)
        self._built = "" if why else commit
        return why

    def variables(self) -> dict[str, str]:
        """What the processes of a measurement have in their environment."""
        root = self._checkout.folder
        sources = [str(path) for path in sorted(root.glob("packages/*/src"))] or [
            str(path) for path in (root / "src", root) if path.is_dir()
        ]
        path = [str(self._harness), *sources, *filter(None, [os.environ.get("PYTHONPATH")])]
        return {"PYTHONPATH": os.pathsep.join(path), "PYTHONDONTWRITEBYTECODE": "1"}

    def _native(self) -> list[Path]:
        return list(self._checkout.folder.glob("packages/*/hatch_build.py"))

    def _needs_build(self, commit: str) -> bool:
        if not self._built:
            return True
        return any(name.endswith(_BUILT_FROM) for name in self._checkout.files_changed(self._built, commit))

    def _make_environment(self) -> None:
        """An environment that sees what this one has installed, and has installations of its own before it."""
        folder = self._folder / "environment"
        if folder.exists():
            return
        venv.create(folder, with_pip=False, symlinks=True)
        self._python = str(folder / "bin" / "python")
        inside = sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
        seen = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
        Path(inside, "seen.pth").write_text("\n".join(dict.fromkeys([*seen, *site.getsitepackages()])) + "\n")


def _failure(command: str | Sequence[str], folder: Path, *, shell: bool = False) -> str:
    try:
        done = subprocess.run(
            command, cwd=folder, shell=shell, capture_output=True, text=True, check=False, timeout=_LIMIT
        )
    except subprocess.TimeoutExpired:
        return f"making it ready took more than {_LIMIT} s"
    if done.returncode == 0:
        return ""
    said = (done.stderr.strip() or done.stdout.strip())[-2000:]
    return f"making it ready ended with status {done.returncode}: {said}"
