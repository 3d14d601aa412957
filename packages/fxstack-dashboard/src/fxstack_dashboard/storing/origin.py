"""What results are of: the machine, the versions of what was measured, and the commit."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

DISTRIBUTIONS = (
    "fxstack",
    "inductor-codegen",
    "torch",
    "triton",
    "numpy",
    "transformers",
    "timm",
    "torchvision",
)


def machine() -> tuple[str, dict[str, Any]]:
    """An id and a description of this machine: what decides how fast it is, and nothing that names it or its user."""
    described: dict[str, Any] = {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "gpus": [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())],
    }
    text = json.dumps(described, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12], described


def versions() -> dict[str, str]:
    """Versions of Python and of the distributions that matter, as far as they are installed."""
    found = {"Python": platform.python_version()}
    for name in DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def commit_of(folder: Path) -> tuple[str, str, bool]:
    """The commit of the repository that a folder is in, when it was made, and whether files have changed since; empty
    texts if it is in none."""
    found = _git(folder, "log", "-1", "--format=%H %cI")
    if found is None:
        return "", "", False
    commit, _, when = found.partition(" ")
    return commit, when, bool(_git(folder, "status", "--porcelain", "--untracked-files=no"))


def source_folder() -> Path:
    """Where the fxstack that is measured was imported from; a repository if it is an editable installation."""
    import fxstack

    return Path(str(fxstack.__file__)).resolve().parent


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False
        )
    except OSError:  # no git here
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def _memory() -> int:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    except (ValueError, OSError):
        return 0
