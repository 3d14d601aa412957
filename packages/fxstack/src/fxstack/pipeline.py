"""The whole stack on one captured graph, and the artifact that lets the next process skip most of it.

    graph (torch) -> joint trace -> forward, backward (aten) -> prims -> native code -> one callable

The artifact of a program holds the plan, the keys of its native graphs and the relations between sizes that compiling
relied on. It is found by the captured graph's canonical hash, so that a second process goes from the captured graph to
the callable without tracing, lowering or compiling anything, and without loading what does: the names of other packages
are read from their facades when a program is compiled.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch._ops import OpOverload
from torch.fx import GraphModule, Node

import aot_autograd
import fx_interface
import inductor_codegen
import primtorch_decomps
from aot_autograd import finish, has_parts
from aot_autograd.runtime.autocast import without_autocast
from aot_autograd.runtime.gradients.partial_backward import PartialBackward
from fx_interface import SHAPE_ENV_KEY, CompiledGraph, UnsupportedProgramError
from fx_interface.errors import StackError
from fx_interface.events import span
from fx_interface.execution.rehearsal import rehearsal_of
from fx_interface.graph import HOOKED_KEY
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import ShapeEnv
from fx_interface.torch_internals.graph_source import forward_of
from fxstack.kept_in_parts import KEPT_IN_PARTS
from fxstack.options import Options
from fxstack.programs.data_parallel import cuts_for_buckets
from fxstack.programs.keys import program_key
from fxstack.programs.stored import StoredProgram, load_program, store_program
from inductor_codegen.cache import ArtifactStore, temporary_store
from inductor_codegen.native_errors import MissingCompilerError
from primtorch_decomps import LIBRARY

if TYPE_CHECKING:
    from aot_autograd import JointPlan, Partitioner
    from fxstack.blocks.programs import Planned
    from inductor_codegen import CodegenOptions
    from inductor_codegen.lower.chosen_layouts import Layouts
    from inductor_codegen.schedule.products.build import Choose
    from inductor_codegen.schedule.programs.assemble import Built
    from inductor_codegen.toolchain.beside import Pending

logger = logging.getLogger("fxstack")

FEWEST_NODES = 80
"""Nodes of a captured graph below which equal blocks are not looked for."""


@dataclass(frozen=True, slots=True)
class PrimitiveGraphs:
    """What native code is made of. ``layouts`` are the forward's; ``whole`` as in ``StoredProgram``."""

    plan: JointPlan
    forward: GraphModule
    layouts: Layouts
    backward: GraphModule | None = None
    backward_layouts: Layouts | None = None
    whole: bytes | None = None


def compile_captured(
    graph_module: GraphModule, example_inputs: Sequence[Any], options: Options
) -> CompiledGraph:
    """The callable for a captured graph: loaded if an earlier process made it, else compiled and stored.

    MissingCompilerError IND111 without a C++ compiler, unless the options allow running the graph with torch's kernels;
    UnsupportedProgramError for what the caller must run eagerly.
    """

    def compile_part(
        part: GraphModule, examples: Sequence[Any], is_all: bool = False
    ) -> tuple[CompiledGraph, JointPlan]:
        made, key = _load_or_compile(part, examples, options, is_all)
        forward, backward = _recorded(made, part, options)
        if made.whole is not None and backward is not None:
            backward = PartialBackward(backward, functools.partial(_whole, made, key, part, options))
        run = finish(made.plan, forward, backward, fallback=forward_of(part), rehearse=rehearsal_of(part))
        return run, made.plan

    try:
        cuts = {*cuts_for_buckets(graph_module, example_inputs), *_cuts_for_hooks(graph_module)}
        if cuts:
            try:
                return aot_autograd.compile_in_parts(graph_module, example_inputs, compile_part, cuts)
            except UnsupportedProgramError as error:
                logger.info("a graph is not cut where gradients are sent or looked at: %s", error)
        if has_parts(graph_module):
            return aot_autograd.compile_in_parts(graph_module, example_inputs, compile_part)
        return compile_part(graph_module, example_inputs, is_all=True)[0]
    except MissingCompilerError as error:
        if options.on_missing_compiler == "error":
            raise
        _warn_once(f"no C++ compiler: captured graphs run with torch's own kernels ({error.what})")
        forward: CompiledGraph = graph_module.forward
        return forward


def _cuts_for_hooks(graph_module: GraphModule) -> Collection[Node]:
    """Where to cut a graph whose tensors the program puts hooks on."""
    if not torch.is_grad_enabled() or not any(HOOKED_KEY in node.meta for node in graph_module.graph.nodes):
        return ()
    from aot_autograd.control_flow import hook_cuts  # which few programs need

    return hook_cuts(graph_module)


@functools.cache
def _warn_once(text: str) -> None:
    logger.warning("%s", text)


def _recorded(made: StoredProgram, part: GraphModule, options: Options) -> tuple[Any, Any | None]:
    if not options.cuda_graphs:
        return made.forward, made.backward
    from fxstack.programs.recorded import recorded  # an option that few ask for

    beside_threads = options.cuda_graphs == "beside threads"
    return recorded(made.plan, made.forward, made.backward, part, beside_threads=beside_threads)


def _whole(made: StoredProgram, key: str | None, part: GraphModule, options: Options) -> Any:
    """The backward that takes all gradients, compiled now; processes that come later find it in the place of the other
    one. By torch's operators where it cannot be compiled: a backward of the program is under way."""
    from fxstack.programs.usual_backward import kept_layouts, kept_text  # where a guess was wrong

    assert made.whole is not None
    assert made.plan.backward is not None
    graph = kept_text(made.whole)
    given = kept_layouts(made.plan.backward, graph)
    store = _store(options) if options.cache else None
    try:
        primitive = _primitive(graph, options)
        layouts = inductor_codegen.choose_layouts(primitive, given, exact=options.mode == "strict")
        compiled = inductor_codegen.compile_graph(primitive, _chosen(options), store=store, layouts=layouts)
    except StackError as error:
        logger.warning("a backward runs with torch's own kernels: %s", error)
        return functools.partial(_outside_of_autocast, graph)
    plan = replace(made.plan, backward=replace(made.plan.backward, absent=()))
    with_all = replace(made, plan=plan, backward=compiled, whole=None)
    if key is not None and store is not None:
        store_program(key, with_all, store)
    return _recorded(with_all, part, options)[1]


def _outside_of_autocast(graph: GraphModule, *inputs: Any) -> Any:
    """A graph of operators as it was recorded, whatever surrounds the backward."""
    with without_autocast():
        return graph.forward(*inputs)


def _chosen(options: Options) -> CodegenOptions:
    return inductor_codegen.CodegenOptions(
        cache=options.cache,
        compiler=options.compiler,
        debug=bool(options.debug_kernels),
        autotune=options.autotune,
    )


def _load_or_compile(
    graph_module: GraphModule, example_inputs: Sequence[Any], options: Options, is_all: bool
) -> tuple[StoredProgram, str | None]:
    """The program, and the name that it is kept under. ``is_all``: it is no part of another one."""
    if not options.cache:
        with temporary_store() as passing:
            return _compile(graph_module, example_inputs, options, passing, is_all), None
    assert options.cache_dir is not None
    store = _store(options)
    # names of kernels for people have lines in them, which the key leaves out
    key = None if options.debug_kernels else program_key(graph_module, example_inputs, options)
    env = graph_module.meta.get(SHAPE_ENV_KEY)
    with span("cache", what="program", key=key) as event:
        stored = None if key is None else load_program(key, env, store)
        event.note(hit=stored is not None)
    if stored is not None:
        return stored, key
    known = 0 if env is None else len(env.guards)
    made = _compile(graph_module, example_inputs, options, store, is_all)
    made = replace(made, guards=() if env is None else tuple(env.guards[known:]))
    if key is not None:
        store_program(key, made, store)
    return made, key


def _store(options: Options) -> ArtifactStore:
    if options.remote_cache is None:
        return ArtifactStore(options.cache_dir)
    from fxstack.cache.moving import opened_store  # file systems that few programs need

    return opened_store(options)


def _compile(
    graph_module: GraphModule,
    example_inputs: Sequence[Any],
    options: Options,
    store: ArtifactStore,
    is_all: bool,
) -> StoredProgram:
    inductor_codegen.require_compiler(
        options.compiler
    )  # before the work that would be for nothing without one
    _prepare_kernels(graph_module, example_inputs)
    chosen = _chosen(options)
    choose = inductor_codegen.chooser(chosen, store)
    planned = _by_blocks(graph_module, example_inputs, options, choose, is_all)
    if planned is not None:
        return _compile_planned(planned, chosen, store)
    traced = primitive_graphs(graph_module, example_inputs, options, usual=is_all)
    if traced.backward is None:
        forward = inductor_codegen.compile_graph(traced.forward, chosen, store=store, layouts=traced.layouts)
        return StoredProgram(traced.plan, forward, None)
    begun = inductor_codegen.begin_graph(traced.forward, chosen, store=store, layouts=traced.layouts)
    compile_backward = functools.partial(
        inductor_codegen.compile_graph, traced.backward, chosen, store=store, layouts=traced.backward_layouts
    )
    return replace(_with_backward(traced.plan, begun, compile_backward), whole=traced.whole)


def _prepare_kernels(graph_module: GraphModule, example_inputs: Sequence[Any]) -> None:
    """Have the processes begin that will compile a GPU's kernels, of which there are about half as many as nodes."""
    nodes = len(graph_module.graph.nodes)
    device = next(
        (one.device for one in example_inputs if isinstance(one, torch.Tensor) and one.is_cuda), None
    )
    if device is not None and nodes >= FEWEST_NODES:
        inductor_codegen.prepare_kernels(device, nodes // 2)


def _compile_planned(planned: Planned, chosen: CodegenOptions, store: ArtifactStore) -> StoredProgram:
    env = ShapeEnv()  # its sizes are fixed
    if planned.backward is None:
        return StoredProgram(
            planned.plan, inductor_codegen.compile_program(planned.forward, store, chosen, env), None
        )
    begun = inductor_codegen.begin_program(planned.forward, store, chosen, env)
    compile_backward = functools.partial(
        inductor_codegen.compile_program, planned.backward, store, chosen, env
    )
    return replace(_with_backward(planned.plan, begun, compile_backward), whole=planned.whole)


def _with_backward(
    plan: JointPlan, begun: Pending[CompiledGraph], compile_backward: Callable[[], CompiledGraph]
) -> StoredProgram:
    """The backward is compiled while the C++ compiler is at work on the forward that has begun."""
    try:
        backward = compile_backward()
    except Exception:
        begun.result()  # if that fails, too, it is what fails
        raise
    finally:
        begun.wait()
    return StoredProgram(plan, begun.result(), backward)


def _by_blocks(
    graph_module: GraphModule,
    example_inputs: Sequence[Any],
    options: Options,
    choose: Choose | None,
    usual: bool,
) -> Planned | None:
    """Plan and programs of a graph in which equal blocks follow each other, from a few of these."""
    has_few = len(graph_module.graph.nodes) < FEWEST_NODES
    if has_few or options.debug_kernels or options.verify or options.activation_budget is not None:
        return None  # names and verification are of all graphs, and a budget is one of the whole
    from fxstack.blocks.programs import Planned, planned_by_blocks  # few graphs are so long

    built: Built = {}
    draw = functools.partial(inductor_codegen.plan, built=built, choose=choose)

    def plan(part: GraphModule, examples: Sequence[Any]) -> Planned:
        traced = primitive_graphs(part, examples, options, usual=usual)
        forward = draw(traced.forward, traced.layouts)
        if traced.backward is None:
            return Planned(traced.plan, forward, None)
        backward = draw(traced.backward, traced.backward_layouts)
        return Planned(traced.plan, forward, backward, traced.whole)

    return planned_by_blocks(graph_module, example_inputs, plan)


def primitive_graphs(
    graph_module: GraphModule, example_inputs: Sequence[Any], options: Options, *, usual: bool = False
) -> PrimitiveGraphs:
    """A captured graph traced ahead of time and in primitives, with layouts chosen: all but native code. ``usual``: the
    backward may be one for the gradients that usually arrive."""
    if options.verify:
        fx_interface.verify(graph_module)
    partition = _partitioner(options, example_inputs)
    traced = aot_autograd.trace_joint(
        graph_module,
        example_inputs,
        operators=LIBRARY,
        partition=partition,
        decompositions=_decompositions(options, partition),
    )
    forward = _primitive(traced.forward, options)
    exact = options.mode == "strict"
    layouts = inductor_codegen.choose_layouts(forward, saved=traced.backward is not None, exact=exact)
    if traced.backward is None:
        return PrimitiveGraphs(traced.plan, forward, layouts)
    assert traced.plan.backward is not None
    plan, graph, whole = traced.plan, traced.backward, None
    if usual and len(traced.plan.backward.tangents) > 1:
        from fxstack.programs.usual_backward import usual_backward  # where there are several results

        plan, graph, whole = usual_backward(plan, graph)
    backward = _primitive(graph, options)
    passed = traced.plan.backward.inputs_from_results()
    given = {mine: layouts.saved[result] for mine, result in passed.items() if result in layouts.saved}
    assert plan.backward is not None
    plan = replace(plan, backward=plan.backward.laid_out(given))
    backward_layouts = inductor_codegen.choose_layouts(backward, given, exact=exact)
    return PrimitiveGraphs(plan, forward, layouts, backward, backward_layouts, whole)


def _decompositions(options: Options, partition: Partitioner) -> Mapping[OpOverload, Callable[..., Any]]:
    whole = options.mode == "strict" or partition is aot_autograd.save_everything
    kept_in_parts = {} if whole else KEPT_IN_PARTS
    if options.rng != "counter":
        return kept_in_parts
    from fxstack.counter_random import COUNTER  # an option that few ask for

    return {**COUNTER, **kept_in_parts}


def _partitioner(options: Options, example_inputs: Sequence[Any]) -> Partitioner:
    """The user's budget, or what a device is fastest with: GPUs wait for memory, CPUs for arithmetic."""
    on_gpu = any(isinstance(value, torch.Tensor) and value.is_cuda for value in example_inputs)
    if options.activation_budget is None and not on_gpu:
        return aot_autograd.save_everything
    # with a graph library that nobody else needs
    from aot_autograd.partition.least_traffic import least_traffic
    from aot_autograd.partition.min_cut import min_cut

    return least_traffic if options.activation_budget is None else min_cut(options.activation_budget)


def _primitive(graph_module: GraphModule, options: Options) -> GraphModule:
    """A graph of dialect ``aten`` in primitives."""
    if options.verify:
        fx_interface.verify(graph_module)
    strict = options.mode == "strict"
    table = primtorch_decomps.STRICT if strict else primtorch_decomps.DECOMPOSITIONS
    primitive = primtorch_decomps.decompose(graph_module, table)
    if options.verify:
        fx_interface.verify(primitive)
    return primitive
