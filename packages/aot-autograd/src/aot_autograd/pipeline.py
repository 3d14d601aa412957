"""The pipeline: trace the joint program, split it, compile the halves, join them in a callable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from aot_autograd.control_flow import compile_in_parts, has_parts
from aot_autograd.decompositions import NOTHING, Decompositions
from aot_autograd.joint.interpreter import program_of
from aot_autograd.joint.joint import Joint, Program, trace_program
from aot_autograd.joint.split import TracedProgram, split
from aot_autograd.partition import Partitioner, save_everything
from aot_autograd.plan import Apart, JointPlan, MutatedInput
from aot_autograd.recording.content_queries import Questions, answered
from aot_autograd.runtime import finish
from aot_autograd.runtime.autocast import as_recorded, without_anomaly_detection
from aot_autograd.runtime.finish import is_training
from aot_autograd.runtime.inputs.conjugate_bits import check_marked, is_marked, without_mark
from aot_autograd.runtime.inputs.overlap import OverlapCheck
from fx_interface.backend import CompiledGraph
from fx_interface.errors import UnsupportedProgramError
from fx_interface.events import span
from fx_interface.execution.rehearsal import Rehearsal, rehearsal_of
from fx_interface.graph import placeholders
from fx_interface.operators import OperatorLibrary
from fx_interface.python_runtime.gc_pause import collector_paused
from fx_interface.signature import SHAPE_ENV_KEY, InputDecl, InputKind, Signature, signature_of
from fx_interface.symbols import ShapeEnv, symbol
from fx_interface.tensor_spec import SPEC_KEY, SymSpec, spec_of
from fx_interface.torch_internals.graph_source import forward_of
from fx_interface.torch_internals.torchscript import without_fusion

GraphCompiler = Callable[[GraphModule], CompiledGraph]


def compile_joint(
    graph_module: GraphModule,
    example_inputs: Sequence[Any],
    *,
    operators: OperatorLibrary,
    forward_compiler: GraphCompiler,
    backward_compiler: GraphCompiler | None = None,
    inference_compiler: GraphCompiler | None = None,
    partition: Partitioner = save_everything,
    decompositions: Decompositions = NOTHING,
) -> CompiledGraph:
    """Compile a graph of dialect ``torch`` ahead of time; the result takes its inputs and returns its results.

    ``example_inputs`` are this call's tensors and integers; they are not changed. If gradients are on and an input
    requires grad, forward and backward graphs are compiled, else one graph, by ``inference_compiler``. Operators in
    ``decompositions`` are traced as what the table says (``aot_autograd.decompositions``). A graph with branches or
    loops that data decide about is compiled in parts (``aot_autograd.control_flow``), each with graphs of its own.
    UnsupportedProgramError (codes AOT1xx, AOT2xx) for what the caller must run eagerly.
    """

    def compile_part(part: GraphModule, examples: Sequence[Any]) -> tuple[CompiledGraph, JointPlan]:
        traced = trace_joint(
            part, examples, operators=operators, partition=partition, decompositions=decompositions
        )
        run = compile_traced(
            traced,
            forward_compiler=forward_compiler,
            backward_compiler=backward_compiler,
            inference_compiler=inference_compiler,
            fallback=forward_of(part),
            rehearse=rehearsal_of(part),
        )
        return run, traced.plan

    if has_parts(graph_module):
        return compile_in_parts(graph_module, example_inputs, compile_part)
    return compile_part(graph_module, example_inputs)[0]


def compile_traced(
    traced: TracedProgram,
    *,
    forward_compiler: GraphCompiler,
    backward_compiler: GraphCompiler | None = None,
    inference_compiler: GraphCompiler | None = None,
    fallback: Callable[..., Sequence[Any]] | None = None,
    rehearse: Rehearsal | None = None,
) -> CompiledGraph:
    """Compile the graphs of a traced program and join them; ``fallback`` and ``rehearse`` as for ``finish``."""
    backward: CompiledGraph | None = None
    if traced.backward is None:
        forward = as_recorded((inference_compiler or forward_compiler)(traced.forward))
    else:
        forward = as_recorded(forward_compiler(traced.forward))
        backward = as_recorded((backward_compiler or forward_compiler)(traced.backward))
    return finish(traced.plan, forward, backward, fallback=fallback, rehearse=rehearse)


def trace_joint(
    graph_module: GraphModule,
    example_inputs: Sequence[Any],
    *,
    operators: OperatorLibrary,
    partition: Partitioner = save_everything,
    decompositions: Decompositions = NOTHING,
) -> TracedProgram:
    """The plan and the aten graphs of a torch graph, compiled by nobody yet."""
    env = graph_module.meta.get(SHAPE_ENV_KEY)
    return trace(
        program_of(graph_module),
        declared_inputs(graph_module, example_inputs),
        example_inputs,
        operators=operators,
        env=ShapeEnv() if env is None else env,
        partition=partition,
        opens_grad=_opens_grad(graph_module),
        decompositions=decompositions,
    )


def _opens_grad(graph_module: GraphModule) -> bool:
    """Whether the graph turns gradients on somewhere."""
    return any(
        node.target is torch._C._set_grad_enabled and node.args[0] is True
        for node in graph_module.graph.nodes
    )


def trace(
    program: Program,
    declared: Sequence[InputDecl],
    example_inputs: Sequence[Any],
    *,
    operators: OperatorLibrary,
    env: ShapeEnv,
    partition: Partitioner = save_everything,
    opens_grad: bool = False,
    decompositions: Decompositions = NOTHING,
) -> TracedProgram:
    """As ``trace_joint``, of any program. ``opens_grad``: it may turn gradients on by itself."""
    marked = tuple(index for index, example in enumerate(example_inputs) if is_marked(example))
    given, example_inputs = example_inputs, list(example_inputs)
    for index in marked:
        example_inputs[index] = without_mark(example_inputs[index])
    training = is_training(example_inputs)
    if opens_grad and not training and not torch.is_inference_mode_enabled():
        training = any(isinstance(x, torch.Tensor) and x.requires_grad for x in example_inputs)

    def traced_joint(questions: Questions) -> Joint:
        return trace_program(
            program,
            declared,
            example_inputs,
            operators,
            env,
            training=training,
            decompositions=decompositions,
            questions=questions,
        )

    with (
        span("joint", training=training) as event,
        collector_paused(),
        without_anomaly_detection(),
        without_fusion(),
    ):
        try:
            joint = answered(traced_joint)
        except UnsupportedProgramError as error:
            if error.code != "AOT101" or not _fix_sizes(env):
                raise
            joint = answered(traced_joint)
        traced = split(joint, partition, _must_be_apart(joint.mutated, declared, given), marked)
        event.note(forward=traced.forward, backward=traced.backward)
    check_marked(traced.plan)
    return traced


def _fix_sizes(env: ShapeEnv) -> bool:
    """Fix the symbolic sizes of inputs to their values: not every operator of torch takes others (``lstm``).

    Whether there were any. What is compiled then holds for these sizes only, as guards say.
    """
    open_sizes = [
        atom for atom, info in env.symbols.items() if info.hint is not None and atom not in env.replacements
    ]
    for atom in open_sizes:
        env.specialize(symbol(atom.name))
    return bool(open_sizes)


def declared_inputs(graph_module: GraphModule, example_inputs: Sequence[Any]) -> list[InputDecl]:
    """A declaration for each placeholder: the signature's, or what its node's spec and the example tell."""
    signature = signature_of(graph_module)
    if isinstance(signature, Signature):
        return list(signature.inputs)
    declared = []
    for node, example in zip(placeholders(graph_module.graph), example_inputs, strict=True):
        spec = node.meta.get(SPEC_KEY)
        if spec is None and isinstance(example, torch.Tensor):
            spec = spec_of(example)
        kind = InputKind.SYMBOL if isinstance(spec, SymSpec) else InputKind.USER
        declared.append(InputDecl(node.name, kind, spec))
    return declared


def _must_be_apart(
    mutated: Sequence[MutatedInput], declared: Sequence[InputDecl], example_inputs: Sequence[Any]
) -> Apart:
    """Inputs that may not overlap, to be checked at every call; AOT201 if they overlap in this one.

    Parameters and buffers among themselves are checked now only: they are the same tensors at every call.
    """
    written = tuple(sorted({m.input_index for m in mutated}))
    if not written:
        return Apart()
    tensors = [i for i, example in enumerate(example_inputs) if isinstance(example, torch.Tensor)]
    everything = Apart(written, tuple([i for i in tensors if i not in written]))
    found = OverlapCheck(everything, fixed_sizes=False).first(example_inputs)
    if found is not None:
        one, other = found
        raise UnsupportedProgramError(
            "AOT201",
            f"{declared[one].name} and {declared[other].name} share memory and one of them is written",
            action="pass a copy of one of them (.clone())",
        )
    fixed = (InputKind.PARAMETER, InputKind.BUFFER)
    if any(declared[index].kind not in fixed for index in written):
        return everything
    changing = tuple(index for index in everything.others if declared[index].kind not in fixed)
    return Apart(written, changing) if changing else Apart()
