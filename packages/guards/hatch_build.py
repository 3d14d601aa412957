"""Builds the native guard evaluator: a hatchling hook, and a script that builds in place for development."""

from __future__ import annotations

import os
import shlex
import subprocess
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent
MODULE = f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"


def compile_extension(target: Path) -> None:
    """Compile ``csrc/*.c`` into ``target``; CalledProcessError if the compiler fails."""
    compiler = shlex.split(os.environ.get("CC") or "cc")
    sources = sorted(str(path) for path in (ROOT / "csrc").glob("*.c"))
    include = sysconfig.get_paths()["include"]
    flags = [
        "-O2",
        "-std=c11",
        "-Wall",
        "-Wextra",
        "-Wno-unused-parameter",
        "-fPIC",
        "-shared",
        "-fvisibility=hidden",
    ]
    flags += shlex.split(os.environ.get("CFLAGS", ""))
    subprocess.run([*compiler, *flags, f"-I{include}", "-o", str(target), *sources, "-ldl"], check=True)


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a script, without hatchling
    pass
else:

    class NativeHook(BuildHookInterface):  # type: ignore[type-arg]
        """Puts one freshly compiled library into the wheel (editable builds: into the source tree)."""

        def initialize(self, version: str, build_data: dict[str, object]) -> None:
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            if version == "editable":
                compile_extension(ROOT / "src" / "fx_guards" / MODULE)
                return
            self._folder = tempfile.TemporaryDirectory()
            built = Path(self._folder.name) / MODULE
            compile_extension(built)
            build_data["force_include"] = {str(built): f"fx_guards/{MODULE}"}

        def finalize(self, version: str, build_data: dict[str, object], artifact_path: str) -> None:
            if version != "editable":
                self._folder.cleanup()


if __name__ == "__main__":
    compile_extension(ROOT / "src" / "fx_guards" / MODULE)
