"""Builds the extension ``fxstack_artifact._native``: as a hatchling hook, or in place as ``python hatch_build.py``."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a script, where hatchling need not be installed
    BuildHookInterface = object  # type: ignore[assignment, misc]

ROOT = Path(__file__).resolve().parent
NAME = "_native" + str(sysconfig.get_config_var("EXT_SUFFIX"))
PACKAGE = "fxstack_artifact"


def build(folder: Path) -> Path:
    """Compile ``csrc/core`` and ``csrc/python`` into ``folder`` for the running Python with ``$CC``.

    CalledProcessError if that fails."""
    target = folder / NAME
    compiler = shlex.split(os.environ.get("CC", "") or str(sysconfig.get_config_var("CC") or "cc"))
    flags = ["-std=c11", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-shared"]
    sources = sorted(str(path) for path in (ROOT / "csrc").glob("*/*.c"))
    include = f"-I{sysconfig.get_path('include')}"
    subprocess.run([*compiler, *flags, include, *sources, "-o", str(target), "-ldl"], check=True)
    return target


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Puts the extension into wheels; leaves it in the source tree for editable installs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """``version`` is "standard" or "editable"."""
        if self.target_name != "wheel":
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        if version == "editable":
            build(ROOT / "src" / PACKAGE)
            return
        self._folder = tempfile.TemporaryDirectory()
        made = build(Path(self._folder.name))
        build_data["force_include"][str(made)] = f"{PACKAGE}/{NAME}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Drop the temporary folder."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()


if __name__ == "__main__":
    print(build(ROOT / "src" / PACKAGE), file=sys.stderr)
