"""From generated text to a shared library: compile the units, link them, and look at what the compiler made."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from inductor_codegen.native_errors import CompilationError
from inductor_codegen.temporary import lasting_folder
from inductor_codegen.toolchain.compiler_process import CompilerRun, run_compiler
from inductor_codegen.toolchain.cpp_compiler import Compiler, Unit
from inductor_codegen.toolchain.library_file import faults
from inductor_codegen.trusted import Folder

_LINK = ("-shared", "-fopenmp", "-Wl,-O1", "-Wl,--hash-style=gnu", "-lm")
_BASE_SECONDS, _CHARACTERS_A_SECOND = 60.0, 1000.0
"""A compiler may take this long; g++ alone on a processor reads some 50,000 characters of generated text a second."""
_NO_ROOM = ("No space left on device", "Disk quota exceeded", "Read-only file system")


def build_library(
    compiler: Compiler,
    units: Sequence[Unit],
    folder: Folder,
    name: str = "graph.so",
    symbols: Sequence[str] = (),
) -> bytes:
    """Compile ``units``, several at a time, and link them into the file ``name`` of ``folder``; its content.

    The library must be a whole one for this machine that exports ``symbols``; if it is not, it is made once more.
    CompilationError IND112 with the place of the compiler's messages if it rejects the text, IND113 if it cannot run or
    takes too long, IND114 if twice what it made is not a library. OSError if there is no room in the folder.
    """
    found: list[str] = []
    for _ in range(2):
        folder.remove(name)
        _build(compiler, units, folder, name)
        try:
            made = folder.read(name)
        except FileNotFoundError:
            found = ["there is no file"]
            continue
        found = faults(made, symbols)
        if not found:
            return made
    raise CompilationError(
        "IND114",
        f"{shlex.join(compiler.command)} reported success and made no usable library: {'; '.join(found)}",
        action="check the compiler (a wrapper or a compiler cache, perhaps) and the room on the disk",
    )


def _build(compiler: Compiler, units: Sequence[Unit], folder: Folder, name: str) -> None:
    target = str(folder.path / name)
    seconds = seconds_for(sum(len(unit.text) for unit in units))
    for unit in units:
        folder.replace(f"{unit.name}.cpp", unit.text.encode())
    if len(units) == 1:
        flags = (*compiler.flags(units[0]), _source(units[0], folder))
        _run(compiler, (*flags, "-o", target, "-x", "none", *_LINK), folder, units, seconds)
        return
    with ThreadPoolExecutor(max_workers=min(len(units), os.cpu_count() or 1)) as pool:
        objects = list(pool.map(lambda unit: _compile(compiler, unit, folder, seconds), units))
    _run(compiler, (*objects, "-o", target, *_LINK), folder, units, seconds)


def seconds_for(characters: int) -> float:
    """How long a compiler may take over so many characters of text."""
    return _BASE_SECONDS + characters / _CHARACTERS_A_SECOND


def _compile(compiler: Compiler, unit: Unit, folder: Folder, seconds: float) -> str:
    made = str(folder.path / f"{unit.name}.o")
    arguments = (*compiler.flags(unit), "-c", _source(unit, folder), "-o", made)
    _run(compiler, arguments, folder, (unit,), seconds)
    return made


def _source(unit: Unit, folder: Folder) -> str:
    return str(folder.path / f"{unit.name}.cpp")


def _run(
    compiler: Compiler, arguments: Sequence[str], folder: Folder, units: Sequence[Unit], seconds: float
) -> None:
    command = [*compiler.command, *arguments]
    done = run_compiler(command, seconds, folder.path)
    if not done.status:
        return
    if any(words in done.messages for words in _NO_ROOM):
        words = next(words for words in _NO_ROOM if words in done.messages)
        raise OSError(0, words, str(folder.path))
    if done.status < 0 or "terminated signal" in done.messages or "Killed signal" in done.messages:
        raise CompilationError(
            "IND113",
            f"{shlex.join(compiler.command)} was ended: {done.messages.strip()[:500] or -done.status}",
            action="free some memory",
        )
    log = _keep_log(command, done, units)
    first = next((line for line in done.messages.splitlines() if "error" in line), done.messages[:500])
    raise CompilationError(
        "IND112",
        f"{compiler.command[0]} rejected generated code: {first}",
        action=f"this is a defect of the code generator; the text and all messages are in {log}",
    )


def _keep_log(command: Sequence[str], done: CompilerRun, units: Sequence[Unit]) -> str:
    try:
        with lasting_folder("fxstack-compile-error-") as kept:
            for unit in units:
                kept.write(f"{unit.name}.cpp", unit.text.encode())
            kept.write(
                "log.txt", f"{shlex.join(command)}\n{done.messages}".encode("utf-8", "backslashreplace")
            )
            return str(kept.path / "log.txt")
    except OSError as error:
        return f"no file ({error})"
