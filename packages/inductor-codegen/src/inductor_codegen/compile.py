"""The way through this package: graph -> program -> text -> library -> callable."""

from __future__ import annotations

from torch.fx import GraphModule

from inductor_codegen.cache import ArtifactStore, temporary_store
from inductor_codegen.codegen.wrapper import write_entry
from inductor_codegen.errors import unsupported
from inductor_codegen.ir.program import Program
from inductor_codegen.lower.chosen_layouts import Layouts
from inductor_codegen.native.cpu import build_graph
from inductor_codegen.options import CodegenOptions
from inductor_codegen.pipeline import device_of, kernel_sources, plan
from inductor_codegen.runtime import CompiledGraph


def compile_graph(
    graph_module: GraphModule,
    options: CodegenOptions | None = None,
    *,
    store: ArtifactStore | None = None,
    layouts: Layouts | None = None,
) -> CompiledGraph:
    """The callable for a graph in dialect ``prims``: a native entry with C++ kernels for the CPU, Triton kernels for a
    GPU.

    It takes the graph's inputs positionally and returns a tuple of its outputs, never recorded by autograd. ``store``
    is where the artifact is kept, instead of the options' folder; ``layouts`` are those of ``choose_layouts``, for a
    graph that takes tensors from another one or gives them to it. UnsupportedProgramError (IND10x) for a graph that
    cannot be compiled, MissingCompilerError (IND111), CompilationError (IND112).
    """
    options = options or CodegenOptions()
    program = plan(graph_module, layouts, debug=options.debug)
    if store is not None or options.cache:
        return _build(program, store or ArtifactStore(options.cache_dir), options)
    with temporary_store() as passing:
        return _build(program, passing, options)


def _build(program: Program, store: ArtifactStore, options: CodegenOptions) -> CompiledGraph:
    device = device_of(program)
    if device.type == "cpu":
        entry, kernels = write_entry(program), kernel_sources(program)
        return build_graph(entry, kernels, store, options.compiler, debug=options.debug)
    try:
        from inductor_codegen.native.gpu import build_triton_graph

        return build_triton_graph(program, device, store, options.compiler, debug=options.debug)
    except ImportError as error:
        action = "pip install inductor-codegen[triton]; the graph runs eagerly instead"
        raise unsupported(
            "IND107", f"the graph is for a GPU, and Triton cannot be used: {error}", None, action
        ) from error
