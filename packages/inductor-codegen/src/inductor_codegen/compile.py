"""The way through this package: graph -> program -> text -> library -> callable."""

from __future__ import annotations

import tempfile
from pathlib import Path

from torch.fx import GraphModule

from inductor_codegen.cache import ArtifactStore
from inductor_codegen.codegen.wrapper import write_entry
from inductor_codegen.native import build_graph
from inductor_codegen.options import CodegenOptions
from inductor_codegen.pipeline import kernel_sources, plan
from inductor_codegen.runtime import CompiledGraph


def compile_graph(
    graph_module: GraphModule,
    options: CodegenOptions | None = None,
    *,
    store: ArtifactStore | None = None,
) -> CompiledGraph:
    """The native callable for a graph in dialect ``prims`` whose tensors are on the CPU.

    It takes the graph's inputs positionally and returns a tuple of its outputs, never recorded by autograd. ``store``
    is where the artifact is kept, instead of the options' folder. UnsupportedProgramError (IND10x) for a graph that
    cannot be compiled, MissingCompilerError (IND111), CompilationError (IND112).
    """
    options = options or CodegenOptions()
    program = plan(graph_module)
    kernels = kernel_sources(program)
    entry = write_entry(program)
    if store is not None or options.cache:
        return build_graph(entry, kernels, store or ArtifactStore(options.cache_dir), options.compiler)
    with tempfile.TemporaryDirectory(prefix="fxstack-") as folder:  # a loaded library outlives its file
        return build_graph(entry, kernels, ArtifactStore(Path(folder)), options.compiler)
