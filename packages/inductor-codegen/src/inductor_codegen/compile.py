"""The way through this package: graph -> program -> text -> library -> callable."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch.fx import GraphModule

from fx_interface.events import is_heard
from fx_interface.signature import SHAPE_ENV_KEY
from fx_interface.symbols import ShapeEnv
from inductor_codegen.cache import ArtifactStore, temporary_store
from inductor_codegen.codegen.wrapper import write_entry
from inductor_codegen.errors import unsupported
from inductor_codegen.ir.program import Program
from inductor_codegen.lower.chosen_layouts import Layouts
from inductor_codegen.native.cpu import build_graph
from inductor_codegen.options import CodegenOptions
from inductor_codegen.pipeline import device_of, kernel_sources, plan
from inductor_codegen.runtime import CompiledGraph
from inductor_codegen.toolchain.beside import Beside, Done, Pending, processors

if TYPE_CHECKING:
    from inductor_codegen.schedule.products.build import Choose


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
    env = graph_module.meta.get(SHAPE_ENV_KEY)
    kept = store is not None or options.cache
    given = contextlib.nullcontext(store or ArtifactStore(options.cache_dir)) if kept else temporary_store()
    with given as held:
        program = plan(graph_module, layouts, debug=options.debug, choose=chooser(options, held))
        return compile_program(program, held, options, env)


def begin_graph(
    graph_module: GraphModule,
    options: CodegenOptions,
    *,
    store: ArtifactStore,
    layouts: Layouts | None = None,
) -> Pending[CompiledGraph]:
    """``compile_graph`` of which only Python's part is over, as ``begin_program``."""
    program = plan(graph_module, layouts, debug=options.debug, choose=chooser(options, store))
    return begin_program(program, store, options, graph_module.meta.get(SHAPE_ENV_KEY))


def chooser(options: CodegenOptions, store: ArtifactStore) -> Choose | None:
    """What chooses for matrix products on a GPU, if the options ask for it; it keeps what it measures in the store."""
    if not options.autotune or not torch.cuda.is_available():
        return None
    from inductor_codegen.native.tuning.products import ProductChooser  # asked for by few

    return ProductChooser(store)


def begin_program(
    program: Program, store: ArtifactStore, options: CodegenOptions, env: ShapeEnv | None = None
) -> Pending[CompiledGraph]:
    """``compile_program`` of which only Python's part is over: compilers may be at work until the result is asked for,
    beside what the caller does meanwhile. Where that is heard (events come in their order), launches are measured, or
    there is one processor, all is over."""
    if is_heard() or options.debug or options.autotune or processors() == 1:
        return Done(compile_program(program, store, options, env))
    return Beside(_prepared(program, store, options, env))


def compile_program(
    program: Program, store: ArtifactStore, options: CodegenOptions, env: ShapeEnv | None = None
) -> CompiledGraph:
    """The callable for what ``plan`` has made of a graph; raises as ``compile_graph`` does. ``env``: the graph's."""
    return _prepared(program, store, options, env)()


def _prepared(
    program: Program, store: ArtifactStore, options: CodegenOptions, env: ShapeEnv | None
) -> Callable[[], CompiledGraph]:
    """The rest of ``compile_program``: looking in the store, and compilers."""
    device = device_of(program)
    if device.type == "cpu":
        entry, kernels = write_entry(program), kernel_sources(program)
        return functools.partial(build_graph, entry, kernels, store, options.compiler, debug=options.debug)
    try:
        from inductor_codegen.native.gpu import prepare_triton_graph

        return prepare_triton_graph(
            program,
            device,
            store,
            options.compiler,
            env=env,
            debug=options.debug,
            autotune=options.autotune,
        )
    except ImportError as error:
        action = "pip install inductor-codegen[triton]; the graph runs eagerly instead"
        raise unsupported(
            "IND107", f"the graph is for a GPU, and Triton cannot be used: {error}", None, action
        ) from error
