"""From text to a callable: build a program's entry and kernels into one library, keep it in the store, load it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from fx_interface.events import span
from inductor_codegen.cache import Artifact, ArtifactStore, Create, content_key
from inductor_codegen.codegen.cpp.text.operations import WIDE
from inductor_codegen.codegen.wrapper import EntrySource
from inductor_codegen.native.library import LIBRARY, load_native_graph
from inductor_codegen.native_errors import ArtifactLoadError, CompilationError
from inductor_codegen.runtime import ENTRY_ABI, CompiledGraph, GraphRecord
from inductor_codegen.toolchain.cpp_compiler import (
    DEBUG_FLAGS,
    ENTRY_FLAGS,
    KERNEL_FLAGS,
    LARGE_ENTRY_FLAGS,
    Compiler,
    Unit,
    find_compiler,
)
from inductor_codegen.toolchain.shared_libraries import build_library
from inductor_codegen.trusted import Folder

_FORMAT = "2"  # libraries that were looked at when they were made, and name their key
_LARGE_ENTRY = 19000  # characters; the time to optimise more is longer than what it saves in calls
_EXPORTED = ("fx_abi", "fx_entry", "fx_bind")
_MARK = '\nextern "C" __attribute__((visibility("default"))) const char {name};\nconst char {name} = 1;\n'


def build_graph(
    entry: EntrySource,
    kernels: Sequence[str],
    store: ArtifactStore,
    compiler_command: str | None = None,
    *,
    debug: bool = False,
) -> CompiledGraph:
    """The callable for ``entry`` and its ``kernels``, out of the store if it is there.

    ``kernels`` are C++ files that together hold every kernel once; they are compiled at the same time. ``debug``: with
    the lines of the C++, which is kept beside the library.

    MissingCompilerError IND111 without a compiler; CompilationError IND112 when the text is rejected, IND113 to IND115
    when the compiler cannot do its work.
    """
    compiler = find_compiler(compiler_command, memo=store.folder)
    key = graph_key(entry, kernels, compiler, debug=debug)
    kept = store.path(key).absolute() if debug else None

    def create(folder: Folder) -> tuple[Any, Mapping[str, bytes]]:
        event.note(hit=False)
        library, record = build_entry(entry, kernels, key, compiler, folder, kept)
        return record.to_data(), {LIBRARY: library, **sources(entry, kernels, key, kept)}

    with span("cache", what="library", key=key, hit=True) as event:
        try:
            return load_native_graph(store.get_or_create(key, create))
        except ArtifactLoadError:
            return load_again(key, create, store, load_native_graph)


def load_again(
    key: str, create: Create, store: ArtifactStore, load_it: Callable[[Artifact], CompiledGraph]
) -> CompiledGraph:
    """Once more, from the text, what was evicted between look-up and loading, or cannot be loaded.

    CompilationError IND114 if what was just made cannot be loaded either.
    """
    store.remove(key)
    try:
        return load_it(store.get_or_create(key, create))
    except ArtifactLoadError as error:
        store.remove(key)
        raise CompilationError(
            "IND114",
            f"a library that was just made cannot be loaded: {error.what}",
            action="check the compiler",
        ) from error


def build_entry(
    entry: EntrySource,
    kernels: Sequence[str],
    key: str,
    compiler: Compiler,
    folder: Folder,
    kept: Path | None = None,
) -> tuple[bytes, GraphRecord]:
    """The content of the library, made in ``folder``, and the record of a graph. ``kept``: where its C++ will lie
    (``sources``), for debuggers; None: the library knows no lines.

    The library exports a symbol that names its key, so that another graph's is not taken for it.
    """
    units = _units(entry, kernels, key)
    if kept is not None:
        debugging = (*DEBUG_FLAGS, f"-fdebug-prefix-map={folder.path}={kept}")
        units = [replace(unit, flags=(*unit.flags, *debugging)) for unit in units]
    with span("compile", units=units):
        library = build_library(compiler, units, folder, LIBRARY, (*_EXPORTED, _mark_of(key)))
    record = GraphRecord(key, entry.input_kinds, entry.output_kinds, entry.operators, entry.release_gil)
    return library, record


def _units(entry: EntrySource, kernels: Sequence[str], key: str) -> list[Unit]:
    large = len(entry.text) > _LARGE_ENTRY
    units = [Unit(f"kernels{i}", text, KERNEL_FLAGS, WIDE in text) for i, text in enumerate(kernels)]
    text = entry.text + _MARK.format(name=_mark_of(key))
    return [*units, Unit("entry", text, LARGE_ENTRY_FLAGS if large else ENTRY_FLAGS)]


def sources(entry: EntrySource, kernels: Sequence[str], key: str, kept: Path | None) -> Mapping[str, bytes]:
    """The C++ files that a library's lines are of; none if it knows no lines."""
    return {
        f"{unit.name}.cpp": unit.text.encode() for unit in _units(entry, kernels, key) if kept is not None
    }


def graph_key(entry: EntrySource, kernels: Sequence[str], compiler: Compiler, *, debug: bool = False) -> str:
    """A key over all text, the compiler, the processor, and the versions of torch and this runtime."""
    operators = [str(call.to_data()) for call in entry.operators]
    kinds = f"{entry.input_kinds} {entry.output_kinds} {entry.release_gil}"
    return content_key(
        "graph",
        _FORMAT,
        str(ENTRY_ABI),
        torch.__version__,
        compiler.identity,
        kinds,
        entry.text,
        *kernels,
        *operators,
        *(DEBUG_FLAGS if debug else ()),
    )


def _mark_of(key: str) -> str:
    return f"fx_graph_{key}"
