"""The C++ compiler: finding it, and the flags for the machine that it builds for."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from fx_interface.python_runtime.quick_dataclasses import dataclass
from inductor_codegen.cache import content_key
from inductor_codegen.native_errors import CompilationError, MissingCompilerError
from inductor_codegen.toolchain.compiler_process import run_compiler
from inductor_codegen.trusted import open_folder

_CANDIDATES = ("g++", "c++", "clang++", "gcc", "clang")
COMMON_FLAGS = (
    "-x", "c++", "-std=c++17", "-fPIC", "-pipe", "-w", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti",
    "-fno-asynchronous-unwind-tables",
)  # fmt: skip
KERNEL_FLAGS = (
    *("-O1", "-ftree-loop-vectorize", "-fno-math-errno", "-fno-trapping-math", "-fopenmp"),
    "-ffp-contract=off",
)
"""Neither -ffast-math nor a part of it that changes results: it would also set the processor to flush denormals.
No contraction: whether a product is rounded must not depend on what stands next to it (gcc's -O1 never does)."""
_QUICK = ("-fira-region=one", "-fno-tree-dominator-opts")
"""Parts of gcc's -O1 that take a tenth of the time of compiling kernels and make no kernel faster (measured)."""
_UNCONDITIONAL = ("-fno-tree-sink",)
"""``x > 0 ? x : wide_expm1(x)`` calls for every x, as it is written: moved into a branch the call keeps the loop from
being vectorised (elu took 20 times as long). Only for units that ask for it: nearest interpolation of channels-last
images takes three times as long where nothing is moved into branches."""
_OF_GCC = (*_QUICK, *_UNCONDITIONAL)
ENTRY_FLAGS = ("-O1", "-fopenmp")
LARGE_ENTRY_FLAGS = ("-O0", "-fopenmp")
DEBUG_FLAGS = ("-g", "-fno-omit-frame-pointer")
"""Lines for debuggers, and frames that profilers can walk; what is computed stays the same."""
_NATIVE = ("-march=native",) if platform.machine() in ("x86_64", "AMD64") else ("-mcpu=native",)
_WIDE = "-mprefer-vector-width=512"
_WITH_WIDE_VECTORS = "x86-64-v4"
_TARGETS = frozenset((*_NATIVE, _WIDE, *_OF_GCC))
_ANSWER_SECONDS = 30.0
"""How long a compiler may take to say what it is."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C++ compiler. ``version`` is the first line it prints; ``target`` are flags for the machine we are on."""

    command: tuple[str, ...]
    version: str
    target: tuple[str, ...]

    @property
    def identity(self) -> str:
        """What a key of compiled code must depend on: the compiler, its flags and the processor."""
        return "\n".join(
            (
                self.version,
                *self.target,
                *COMMON_FLAGS,
                *KERNEL_FLAGS,
                *ENTRY_FLAGS,
                *LARGE_ENTRY_FLAGS,
                processor(),
            )
        )

    def flags(self, unit: Unit) -> tuple[str, ...]:
        """The flags for one unit."""
        target = tuple(flag for flag in self.target if unit.unconditional or flag not in _UNCONDITIONAL)
        return (*COMMON_FLAGS, *target, *unit.flags)

    def for_level(self, level: str) -> Compiler:
        """The same, for any processor of a level that the compiler has a name for (``x86-64-v3``), not for ours."""
        own = frozenset((*_NATIVE, _WIDE))
        rest = tuple(flag for flag in self.target if flag not in own)
        wide = (_WIDE,) if level == _WITH_WIDE_VECTORS else ()
        return replace(self, target=(f"-march={level}", *wide, *rest))


@dataclass(frozen=True, slots=True)
class Unit:
    """A translation unit: C++ text and the flags that it is compiled with. ``name`` is a file name's stem.
    ``unconditional``: functions of vectors are called as they are written, and not in branches."""

    name: str
    text: str
    flags: tuple[str, ...]
    unconditional: bool = False


@cache
def processor() -> str:
    """The processor's kind and its instruction sets, in a few words and a hash."""
    features = ""
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith(("flags", "Features")):
                    features = " ".join(sorted(line.partition(":")[2].split()))
                    break
    except OSError:
        features = platform.processor()
    return f"{platform.machine()} {content_key(features)[:16]}"


def find_compiler(command: str | None = None, memo: Path | None = None) -> Compiler:
    """The compiler ``command`` (as ``$CXX`` is written), or the first of g++, c++, clang++, gcc, clang on the path.

    What the compiler says of itself is remembered in the folder ``memo``, under its path, time and size, so that it is
    not run again. MissingCompilerError IND111 if there is none.
    """
    words, path = require_compiler(command)
    status = os.stat(path)
    stamp = content_key(*words, path, str(status.st_mtime_ns), str(status.st_size), processor(), *_OF_GCC)
    note = f".compiler-{stamp}.json"
    remembered = None if memo is None else _recall(memo, note)
    if remembered is None:
        remembered = _ask(words)
        if memo is not None:
            _note(memo, note, remembered)
    version, *target = remembered
    return Compiler(words, version, tuple(target))


def require_compiler(command: str | None = None) -> tuple[tuple[str, ...], str]:
    """The words that call the compiler, and where it is; nothing is run. MissingCompilerError IND111 without one."""
    wanted: Iterator[tuple[str, ...]] = iter((name,) for name in _CANDIDATES)
    if command:
        wanted = iter((tuple(shlex.split(command)),))
    for words in wanted:
        path = shutil.which(words[0])
        if path is not None:
            return words, path
    raise MissingCompilerError(
        "IND111",
        f"no C++ compiler was found: {command!r}, the one that was asked for, cannot be run"
        if command
        else f"no C++ compiler was found: none of {', '.join(_CANDIDATES)} is on the path",
        action="install one (Debian: apt install g++; Fedora: dnf install gcc-c++; conda: conda install gxx), or "
        'name it in $CXX; without a compiler use backend="aot_eager", or '
        'options={"on_missing_compiler": "eager"}, which warns once',
    )


def _ask(words: tuple[str, ...]) -> list[str]:
    """The compiler's version line, and the flags for this machine that it accepts."""
    version = _output([*words, "--version"])
    if version is None:
        raise CompilationError("IND113", f"{shlex.join(words)} --version failed", action="check $CXX")
    native = list(_NATIVE)
    probe = ["-x", "c++", "-E", "-dM", os.devnull]
    macros = _output([*words, *native, *probe])
    target = [] if macros is None else native
    macros = macros or _output([*words, *probe]) or ""
    if "__AVX512F__" in macros:
        target.append(_WIDE)
    if "__GNUC__" in macros and "__clang__" not in macros:
        target += _OF_GCC
    return [version.partition("\n")[0], *target]


def _output(command: list[str]) -> str | None:
    done = run_compiler(command, _ANSWER_SECONDS)
    return done.output if done.status == 0 else None


def _recall(memo: Path, name: str) -> list[str] | None:
    """What was noted of a compiler, if nobody else could have, and if its flags are ones that we might have noted."""
    try:
        with open_folder(memo) as folder:
            found = json.loads(folder.read(name))
    except (OSError, RecursionError, ValueError):
        return None
    good = isinstance(found, list) and found and all(isinstance(word, str) for word in found)
    return found if good and _TARGETS.issuperset(found[1:]) else None


def _note(memo: Path, name: str, remembered: list[str]) -> None:
    with contextlib.suppress(OSError), open_folder(memo, create=True) as folder:
        folder.replace(name, json.dumps(remembered).encode())
