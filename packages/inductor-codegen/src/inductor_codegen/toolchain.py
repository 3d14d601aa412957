"""The C++ compiler: finding it, the machine that it builds for, and building a shared library of generated text."""

from __future__ import annotations

import json
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from inductor_codegen.cache import content_key
from inductor_codegen.native_errors import CompilationError, MissingCompilerError

_CANDIDATES = ("g++", "c++", "clang++", "gcc", "clang")
_COMMON = (
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
ENTRY_FLAGS = ("-O1", "-fopenmp")
LARGE_ENTRY_FLAGS = ("-O0", "-fopenmp")
_TIMEOUT = 600.0


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
                *_COMMON,
                *KERNEL_FLAGS,
                *ENTRY_FLAGS,
                *LARGE_ENTRY_FLAGS,
                processor(),
            )
        )


@dataclass(frozen=True, slots=True)
class Unit:
    """A translation unit: C++ text and the flags that it is compiled with. ``name`` is a file name's stem."""

    name: str
    text: str
    flags: tuple[str, ...]


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
    words, path = _locate(command)
    status = os.stat(path)
    stamp = content_key(*words, path, str(status.st_mtime_ns), str(status.st_size), processor())
    note = None if memo is None else memo / f".compiler-{stamp}.json"
    remembered = None if note is None else _recall(note)
    if remembered is None:
        remembered = _ask(words)
        if note is not None:
            _note(note, remembered)
    version, *target = remembered
    return Compiler(words, version, tuple(target))


def build_library(compiler: Compiler, units: Sequence[Unit], folder: Path, name: str = "graph.so") -> Path:
    """Compile ``units``, several at a time, and link them into ``folder / name``.

    CompilationError IND112 with the place of the compiler's messages if it rejects the text.
    """
    target = folder / name
    link = ("-shared", "-fopenmp", "-Wl,-O1", "-Wl,--hash-style=gnu", "-lm")
    if len(units) == 1:
        source = _write(units[0], folder)
        _run(
            compiler,
            (*_flags(compiler, units[0]), str(source), "-o", str(target), "-x", "none", *link),
            folder,
        )
        return target
    with ThreadPoolExecutor(max_workers=min(len(units), os.cpu_count() or 1)) as pool:
        objects = list(pool.map(lambda unit: _compile(compiler, unit, folder), units))
    _run(compiler, (*map(str, objects), "-o", str(target), *link), folder)
    return target


def _flags(compiler: Compiler, unit: Unit) -> tuple[str, ...]:
    return (*_COMMON, *compiler.target, *unit.flags)


def _write(unit: Unit, folder: Path) -> Path:
    source = folder / f"{unit.name}.cpp"
    source.write_text(unit.text)
    return source


def _compile(compiler: Compiler, unit: Unit, folder: Path) -> Path:
    source = _write(unit, folder)
    made = source.with_suffix(".o")
    _run(compiler, (*_flags(compiler, unit), "-c", str(source), "-o", str(made)), folder)
    return made


def _run(compiler: Compiler, arguments: tuple[str, ...], folder: Path) -> None:
    command = [*compiler.command, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompilationError(
            "IND113", f"the C++ compiler could not be run: {error}", action="check $CXX, or free some memory"
        ) from error
    if done.returncode:
        log = _keep_log(command, done.stderr, folder)
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[:500])
        raise CompilationError(
            "IND112",
            f"{compiler.command[0]} rejected generated code: {first}",
            action=f"this is a defect of the code generator; the text and all messages are in {log}",
        )


def _keep_log(command: Sequence[str], messages: str, folder: Path) -> Path:
    kept = Path(tempfile.mkdtemp(prefix="fxstack-compile-error-"))
    for source in folder.glob("*.cpp"):
        shutil.copy(source, kept)
    log = kept / "log.txt"
    log.write_text(f"{shlex.join(command)}\n{messages}")
    return log


def _locate(command: str | None) -> tuple[tuple[str, ...], str]:
    wanted: Iterator[tuple[str, ...]] = iter((name,) for name in _CANDIDATES)
    if command:
        wanted = iter((tuple(shlex.split(command)),))
    for words in wanted:
        path = shutil.which(words[0])
        if path is not None:
            return words, path
    named = f"{command!r}" if command else f"none of {', '.join(_CANDIDATES)}"
    raise MissingCompilerError(
        "IND111",
        f"no C++ compiler was found: {named} is on the path",
        action="install one (Debian: apt install g++; Fedora: dnf install gcc-c++; conda: conda install gxx), or "
        'name it in $CXX; without a compiler use backend="aot_eager" or "eager"',
    )


def _ask(words: tuple[str, ...]) -> list[str]:
    """The compiler's version line, and the flags for this machine that it accepts."""
    version = _output([*words, "--version"])
    if version is None:
        raise CompilationError("IND113", f"{shlex.join(words)} --version failed", action="check $CXX")
    native = ["-march=native"] if platform.machine() in ("x86_64", "AMD64") else ["-mcpu=native"]
    probe = ["-x", "c++", "-E", "-dM", os.devnull]
    macros = _output([*words, *native, *probe])
    target = [] if macros is None else native
    macros = macros or _output([*words, *probe]) or ""
    if "__AVX512F__" in macros:
        target.append("-mprefer-vector-width=512")
    if "__GNUC__" in macros and "__clang__" not in macros:
        target += _QUICK
    return [version.partition("\n")[0], *target]


def _output(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _recall(note: Path) -> list[str] | None:
    try:
        found = json.loads(note.read_text())
    except (OSError, ValueError):
        return None
    good = isinstance(found, list) and found and all(isinstance(word, str) for word in found)
    return found if good else None


def _note(note: Path, remembered: list[str]) -> None:
    try:
        note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = note.with_suffix(f".{os.getpid()}.tmp")
        fresh.write_text(json.dumps(remembered))
        os.replace(fresh, note)
    except OSError:
        return
