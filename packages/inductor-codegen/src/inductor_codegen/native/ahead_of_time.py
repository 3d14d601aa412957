"""A graph as a native object for another time and place: compiled and looked at, not loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from fx_interface.python_runtime.quick_dataclasses import dataclass
from inductor_codegen.cache import ArtifactStore, temporary_store
from inductor_codegen.codegen.wrapper import write_entry
from inductor_codegen.errors import unsupported
from inductor_codegen.lower.chosen_layouts import Layouts
from inductor_codegen.native.cpu import build_entry, graph_key
from inductor_codegen.native.library import LIBRARY
from inductor_codegen.options import CodegenOptions
from inductor_codegen.pipeline import kernel_sources, plan
from inductor_codegen.runtime import GraphRecord
from inductor_codegen.toolchain.cpp_compiler import find_compiler
from inductor_codegen.trusted import Folder


@dataclass(frozen=True, slots=True)
class NativeObject:
    """A compiled graph outside of any process. ``libraries``: the content of a shared library for each level."""

    record: GraphRecord
    libraries: Mapping[str, bytes]


def compile_for_levels(
    graph_module: GraphModule,
    levels: Sequence[str],
    options: CodegenOptions | None = None,
    *,
    store: ArtifactStore | None = None,
    layouts: Layouts | None = None,
) -> NativeObject:
    """The native objects of a CPU graph in dialect ``prims``, one for each processor level (``x86-64-v3``).

    The arguments are those of ``compile_graph``, and so are the errors; IND105 for a graph that is not on the CPU.
    """
    options = options or CodegenOptions()
    program = plan(graph_module, layouts)
    if any(buffer.device != torch.device("cpu") for buffer in program.buffers().values()):
        raise unsupported("IND105", "native objects are made for graphs on the CPU", None)
    if store is None and not options.cache:
        with temporary_store() as passing:
            return compile_for_levels(graph_module, levels, options, store=passing, layouts=layouts)
    store = store or ArtifactStore(options.cache_dir)
    entry, kernels = write_entry(program), kernel_sources(program)
    compiler = find_compiler(options.compiler, memo=store.folder)
    libraries = {}
    for level in levels:
        chosen = compiler.for_level(level)
        key = graph_key(entry, kernels, chosen)

        def create(folder: Folder, key: str = key, chosen: Any = chosen) -> tuple[Any, Mapping[str, bytes]]:
            library, record = build_entry(entry, kernels, key, chosen, folder)
            return record.to_data(), {LIBRARY: library}

        libraries[level] = store.get_or_create(key, create).files[LIBRARY].read_bytes()
    record = GraphRecord("", entry.input_kinds, entry.output_kinds, entry.operators, entry.release_gil)
    return NativeObject(record, libraries)
