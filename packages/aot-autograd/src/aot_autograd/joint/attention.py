"""Attention with programs: what is computed at a point, and its derivative, are traced once and become text.

    score(s, b, h, q, kv, bias) = s + bias[h, q]
    ->  score    add(s, index(bias, [h, q]))
        joint    (s, b, h, q, kv, bias, g) -> g;  g, h, q      the gradient of s; what bias's gets, and where

The operators in ``fx_interface.attention`` are given these programs. Where one is not made of numbers without
dimensions, the region runs as it is, with all scores in memory.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from aot_autograd.joint.joint import Program, trace_program
from aot_autograd.joint.split import TracedProgram, split
from aot_autograd.partition import save_everything
from aot_autograd.plan import Apart, FromGraph, FromInput
from aot_autograd.recording.content_queries import Questions, answered
from aot_autograd.recording.record import Recorder
from fx_interface.attention.differentiable import Programs, attention_by_programs
from fx_interface.attention.programs import is_pointwise, text_of
from fx_interface.errors import UnsupportedProgramError
from fx_interface.graph import outputs, placeholders
from fx_interface.regions import gradient
from fx_interface.regions.attention import BLOCK_TENSORS, attention, working_dtype
from fx_interface.signature import (
    DIALECT_KEY,
    SIGNATURE_KEY,
    InputDecl,
    InputKind,
    OutputDecl,
    OutputKind,
    Signature,
)
from fx_interface.tensor_spec import SPEC_KEY, SymSpec, TensorSpec
from fx_interface.torch_internals.dispatch_mode import without_dispatch_modes

aten = torch.ops.aten
logger = logging.getLogger("aot_autograd")

ProgramMaker = Callable[[GraphModule], Program]
_POINTS = 5
"""What a program for scores is given before its operands: the score, and where it is."""


class _Refused(Exception):
    """Why a sub-graph is no program."""


def record_attention(
    recorder: Recorder, program_of: ProgramMaker, bodies: Sequence[Any], args: Sequence[Any], options: Any
) -> Any:
    """The results of an attention region in the trace that ``recorder`` records."""
    modules = [body.graph_module for body in bodies]
    rest = args[3 + BLOCK_TENSORS :]
    try:
        programs, tensors, numbers = _programs(recorder, program_of, modules, args[:3], rest, options)
    except (UnsupportedProgramError, _Refused) as refused:
        logger.warning("AOT128 attention keeps all scores in memory: %s", refused)
        return attention(*bodies, *args, **options)
    blocks = list(args[3 : 3 + BLOCK_TENSORS])
    return attention_by_programs(programs, args[:3], blocks, tensors, numbers)


def _programs(
    recorder: Recorder,
    program_of: ProgramMaker,
    modules: Sequence[GraphModule],
    given: Sequence[torch.Tensor],
    rest: Sequence[Any],
    options: Any,
) -> tuple[Programs, list[torch.Tensor], list[Any]]:
    places = [place for place, one in enumerate(rest) if isinstance(one, torch.Tensor)]
    others = [place for place, one in enumerate(rest) if not isinstance(one, torch.Tensor)]
    if any(isinstance(rest[place], (float, torch.SymFloat)) for place in others):
        raise _Refused("a number that is not an integer varies")
    order = {place: number for number, place in enumerate([*places, *others])}
    score_args, mask_args = (
        tuple(order[place] for place in options[name]) for name in ("score_args", "mask_args")
    )
    score, mask = (_traced(recorder, program_of(module), _declared(module)) for module in modules)
    training = torch.is_grad_enabled() and any(
        isinstance(one, torch.Tensor) and one.requires_grad for one in (*given, *rest)
    )
    joint: str | None = None
    trained: tuple[int, ...] = ()
    ranks: tuple[int, ...] = ()
    if training:
        wanted = [
            position
            for position, place in enumerate(options["score_args"])
            if isinstance(rest[place], torch.Tensor) and rest[place].requires_grad
        ]
        joint, parts = _joint(recorder, program_of(modules[0]), _declared(modules[0]), wanted)
        trained = tuple(score_args[position] for position, _ in parts)
        ranks = tuple(rank for _, rank in parts)
    programs = Programs(
        _text(score),
        _text(mask),
        score_args,
        mask_args,
        float(options["scale"]),
        tuple(options["block_size"] or ()),
        bool(options["with_max"]),
        joint,
        trained,
        ranks,
    )
    return programs, [rest[place] for place in places], [rest[place] for place in others]


def _declared(module: GraphModule) -> list[InputDecl]:
    made = []
    for node in placeholders(module.graph):
        spec = node.meta[SPEC_KEY]
        kind = InputKind.SYMBOL if isinstance(spec, SymSpec) else InputKind.USER
        if isinstance(spec, TensorSpec):
            spec = TensorSpec(spec.sizes, spec.strides, spec.dtype, spec.device)
        made.append(InputDecl(node.name, kind, spec))
    return made


def _traced(recorder: Recorder, program: Program, declared: Sequence[InputDecl]) -> tuple[Graph, list[Node]]:
    """The aten graph of a program that has no gradients, and the nodes of its results."""
    examples = [torch.empty(0) if isinstance(decl.spec, TensorSpec) else None for decl in declared]

    def joint(questions: Questions) -> Any:
        return trace_program(
            program,
            declared,
            examples,
            recorder.operators,
            recorder.env,
            training=False,
            questions=questions,
        )

    with torch.no_grad(), without_dispatch_modes():
        traced = split(answered(joint), save_everything, Apart())
    return _results(traced, len(declared))


def _results(traced: TracedProgram, count: int) -> tuple[Graph, list[Node]]:
    graph = traced.forward.graph
    given, made = placeholders(graph), outputs(graph)
    if len(given) != count:
        raise _Refused("it uses a tensor with content of its own")
    if traced.plan.mutated:
        raise _Refused("it writes to a tensor")
    found = []
    for recipe in traced.plan.recipes:
        match recipe:
            case FromGraph(index) if isinstance(made[index], Node):
                found.append(made[index])
            case FromInput(index):
                found.append(given[index])
            case _:
                raise _Refused("it returns a view, or what is no tensor")
    return graph, found


def _text(traced: tuple[Graph, list[Node]]) -> str:
    """A program of these results; its nodes tell no lines, so that equal programs are equal texts."""
    graph, results = traced
    made = Graph()
    copies: dict[Node, Node] = {}
    needed = _needed(results)
    for node in graph.nodes:
        if node.op == "placeholder" or node in needed:
            copies[node] = made.node_copy(node, copies.__getitem__)
            copies[node].meta = {SPEC_KEY: node.meta.get(SPEC_KEY)}
    made.output(tuple(copies[node] for node in results))
    module = GraphModule(torch.nn.Module(), made)
    if not is_pointwise(module):
        raise _Refused("it computes with tensors that have dimensions")
    module.meta[DIALECT_KEY] = "aten"
    inputs = tuple(
        InputDecl(
            node.name,
            InputKind.SYMBOL if isinstance(node.meta[SPEC_KEY], SymSpec) else InputKind.USER,
            node.meta[SPEC_KEY],
        )
        for node in placeholders(made)
    )
    module.meta[SIGNATURE_KEY] = Signature(inputs, tuple(OutputDecl(OutputKind.USER) for _ in results))
    return text_of(module)


def _needed(results: Sequence[Node]) -> set[Node]:
    found: set[Node] = set()
    pending = list(results)
    while pending:
        node = pending.pop()
        if node not in found:
            found.add(node)
            pending += node.all_input_nodes
    return found


def _joint(
    recorder: Recorder, program: Program, declared: Sequence[InputDecl], wanted: Sequence[int]
) -> tuple[str, list[tuple[int, int]]]:
    """The program of a score's derivative, and whose gradient its parts are (by the position among the operands)."""
    first = declared[0].spec
    assert isinstance(first, TensorSpec)
    arriving = InputDecl("arriving", InputKind.USER, first)
    leaves = [0, *(_POINTS + position for position in wanted)]

    def run(inner: Recorder, inputs: Sequence[Any]) -> Sequence[Any]:
        *args, seed = inputs
        others = [place for place in range(len(args)) if place not in leaves]

        def body(*given: Any) -> Sequence[Any]:
            at = dict(zip([*leaves, *others], given, strict=True))
            found = tuple(program(inner, [at[place] for place in range(len(args))]))
            return (found[0].to(working_dtype(first.dtype)),)

        chosen = [args[place] for place in leaves]
        passed = [args[place] for place in others]
        return gradient(body, *chosen, seed, *passed, wrt=len(leaves), seeds=1)[: len(leaves)]

    graph, results = _traced(recorder, run, [*declared, arriving])
    made, parts = [results[0]], []
    for position, result in zip(wanted, results[1:], strict=True):
        for value, indices in _scatters(result):
            made += [value, *indices]
            parts.append((position, len(indices)))
    return _text((graph, made)), parts


def _scatters(node: Node) -> list[tuple[Node, list[Node]]]:
    """An operand's gradient as what is added at which indices. ``_Refused`` if it is anything else."""
    spec = node.meta.get(SPEC_KEY)
    if isinstance(spec, TensorSpec) and not spec.sizes:
        return [(node, [])]
    match node.target:
        case aten.add.Tensor if not node.kwargs:
            return [part for arg in node.args if isinstance(arg, Node) for part in _scatters(arg)]
        case aten.index_put.default | aten._unsafe_index_put.default:
            base, indices, value, accumulates = (*node.args, False)[:4]
            if accumulates and isinstance(base, Node) and isinstance(value, Node) and _is_zero(base):
                listed = list(indices) if isinstance(indices, (list, tuple)) else []
                if listed and all(isinstance(index, Node) for index in listed):
                    return [(value, listed)]
    if _is_zero(node):
        return []
    raise _Refused("the gradient of a tensor that it reads is no sum over points")


def _is_zero(node: Node) -> bool:
    """Whether a node makes zeros."""
    if node.target in (aten.zeros.default, aten.new_zeros.default, aten.zeros_like.default):
        return True
    if node.target in (aten.full.default, aten.new_full.default, aten.full_like.default):
        value = node.args[2 if node.target is aten.new_full.default else 1]
        return isinstance(value, (int, float)) and value == 0
    return False
