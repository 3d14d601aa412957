"""torch, once for each version and CPython under ``.nox/``, for all environments to see through a ``.pth`` file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from workspace import ROOT


def folder_with(python: str, torch: str, interpreter: Path, download: bool) -> Path | None:
    """The ``site-packages`` of an environment with that torch; None: there is none, and none is downloaded."""
    for home in (ROOT / ".nox" / f"torch-{python}", ROOT / ".nox" / f"torch-{python}-{torch}"):
        if version_in(home) == torch:
            return home / f"lib/python{python}/site-packages"
    if not download:
        return None
    subprocess.run([sys.executable, "-m", "virtualenv", "--quiet", "--python", interpreter, home], check=True)
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", f"torch=={torch}"]
    if subprocess.run(pip, check=False).returncode != 0:
        return None
    return home / f"lib/python{python}/site-packages"


def version_in(home: Path) -> str | None:
    """The version of torch in an environment, without ``+cpu`` and the like; None where it cannot be imported."""
    python = home / "bin" / "python"
    if not python.exists():
        return None
    done = subprocess.run(
        [python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip().split("+")[0] if done.returncode == 0 else None
