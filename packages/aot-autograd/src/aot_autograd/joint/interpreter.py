"""Running a torch-dialect graph node by node while it is traced, so that each operator knows the user's line.

A region is run as its target says, with its sub-graphs as callables; only a checkpoint is not run twice, but marked.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from aot_autograd.functionalization.out_arguments import call_with_out
from aot_autograd.joint import opaque_calls
from aot_autograd.joint.attention import record_attention
from aot_autograd.joint.joint import Program
from aot_autograd.joint.selection import Selection
from aot_autograd.recording.record import Recorder
from aot_autograd.recording.trace import TracedTensor
from aot_autograd.views.memory import read
from fx_interface.composites import COMPOSITES
from fx_interface.errors import UnsupportedProgramError
from fx_interface.graph import BORN_KEY, EXPECTED_KEY, location_of_node, size_max, size_min
from fx_interface.operator_facts.collectives import is_wait
from fx_interface.regions import attention, checkpointed, differentiable
from fx_interface.regions.checkpoint import policy_named
from fx_interface.symbols import Expr, Symbol, symbol
from fx_interface.tensor_spec import SPEC_KEY, SymSpec, TensorSpec
from fx_interface.torch_internals.modes import BLOCKS

_LEAVING: Final = frozenset(BLOCKS.values())


def program_of(graph_module: GraphModule) -> Program:
    """The graph as a program that can be traced."""

    def run(recorder: Recorder, inputs: Sequence[Any]) -> Sequence[Any]:
        given = iter(inputs)
        values: dict[Node, Any] = {}
        entered: dict[Node, Any] = {}
        try:
            return follow(recorder, given, values, entered)
        finally:
            for node, token in reversed(entered.items()):
                _leaving(node)(token)

    def follow(
        recorder: Recorder, given: Iterator[Any], values: dict[Node, Any], entered: dict[Node, Any]
    ) -> Sequence[Any]:
        for node in graph_module.graph.nodes:
            match node.op:
                case "placeholder":
                    values[node] = next(given)
                    continue
                case "output":
                    held = _fill_in(node.args[0], values)
                    return held if isinstance(held, (tuple, list)) else (held,)
                case "get_attr":
                    held = operator.attrgetter(str(node.target))(graph_module)
                    values[node] = _body(recorder, held) if isinstance(held, GraphModule) else held
                    continue
            recorder.at(location_of_node(node))
            args, kwargs = _fill_in(node.args, values), _fill_in(node.kwargs, values)
            if EXPECTED_KEY in node.meta:
                recorder.check_expected(node.meta[EXPECTED_KEY])
            recorder.env.again = node.meta.get(BORN_KEY)
            recorder.spectrum_alone = node.target in _READ_SPECTRA
            rule = _REGIONS.get(node.target)
            values[node] = _call(node, args, kwargs) if rule is None else rule(recorder, *args, **kwargs)
            recorder.env.again = None
            if BORN_KEY in node.meta:
                _note_name(recorder, node.meta[BORN_KEY], node.meta.get(SPEC_KEY), values[node])
            if is_wait(node.target):
                _waited(node, values)
            if node.target in BLOCKS:
                entered[node] = values[node]
            elif node.target in _LEAVING:
                entered.pop(node.args[0])
        raise AssertionError("a graph ends in an output node")

    return run


def _waited(node: Node, values: dict[Node, Any]) -> None:
    """What is waited for is the tensor itself: who reads it afterwards reads what has been waited for. AOT127 where it
    has been read before, by a view of it, say, whose content comes late."""
    (pending,) = node.args
    if not isinstance(pending, Node):
        return
    if any(user in values for user in pending.users if user is not node):
        raise UnsupportedProgramError(
            "AOT127",
            f"the result of {pending.name} is used before it is waited for",
            where=location_of_node(node),
        )
    values[pending] = values[node]


def _note_name(recorder: Recorder, atom: Symbol, spec: Any, made: Any) -> None:
    """What the number ``atom`` of the captured graph is called here, where it is not new."""
    if isinstance(spec, (tuple, list)):
        for part, item in zip(spec, made, strict=True):
            _note_name(recorder, atom, part, item)
    elif isinstance(spec, SymSpec) and spec.expr == symbol(atom.name):
        _rename(recorder, atom, made)
    elif isinstance(spec, TensorSpec) and isinstance(made, torch.Tensor):
        for size, found in zip(spec.sizes, made.shape, strict=True):
            if isinstance(size, Expr) and size.as_symbol is atom:
                _rename(recorder, atom, found)


def _rename(recorder: Recorder, atom: Symbol, found: Any) -> None:
    if atom in recorder.births:  # it keeps its name, even where what follows requires that it be 3
        return
    name = found.node.value if isinstance(found, torch.SymInt) else int(found)
    if isinstance(name, int) or name.as_symbol is not atom:
        recorder.renamed[atom] = name


def _body(recorder: Recorder, graph_module: GraphModule) -> Callable[..., Any]:
    """A sub-graph as what a region's target calls."""
    program = program_of(graph_module)

    def run(*args: Any) -> Sequence[Any]:
        return tuple(program(recorder, args))

    run.graph_module = graph_module  # type: ignore[attr-defined]
    return run


def _checkpointed(
    recorder: Recorder,
    body: Callable[..., Any],
    *args: Any,
    saved: Sequence[int] = (),
    policy: str | None = None,
) -> Any:
    """What is computed inside is not kept for the backward; results of the outermost one may be, and what the policy
    says."""
    asked = None if policy is None else policy_named(policy)
    recorder.checkpoints += 1
    try:
        with nullcontext() if asked is None else Selection(recorder, asked):
            results = body(*args)
    finally:
        recorder.checkpoints -= 1
    if not recorder.checkpoints:
        for result in results:
            if isinstance(result, TracedTensor):
                read(recorder, result).recomputed = False
    return results


def _differentiable(recorder: Recorder, forward: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """A function saves what its author chose: what its backward computes again is not kept because it is known."""
    return differentiable(lambda *inputs: _checkpointed(recorder, forward, *inputs), *args, **options)


def _attention(recorder: Recorder, score: Any, mask: Any, *args: Any, **options: Any) -> Any:
    """Operators that are given what the sub-graphs compute."""
    return record_attention(recorder, program_of, (score, mask), args, options)


_REGIONS: Final[Mapping[Callable[..., Any], Callable[..., Any]]] = {
    attention: _attention,
    checkpointed: _checkpointed,
    differentiable: _differentiable,
}


def _leaving(node: Node) -> Callable[..., Any]:
    """What leaves the block that ``node`` enters."""
    assert callable(node.target)
    return BLOCKS[node.target]


def _fill_in(arg: Any, values: dict[Node, Any]) -> Any:
    return map_arg(arg, values.__getitem__)


_SEEDING: Final = frozenset(
    {"manual_seed", "manual_seed_all", "seed", "seed_all", "set_rng_state", "set_rng_state_all"}
)
"""Functions of torch that set a generator's state: they would run once, while the graph is traced, and never again.
By name, because torch wraps some of them again when other parts of it are imported."""


def _seeds(function: Any) -> bool:
    return getattr(function, "__name__", "") in _SEEDING and str(function.__module__).startswith("torch")


_READ_SPECTRA: Final = frozenset(
    {
        *(torch.linalg.svdvals, torch.linalg.eigvalsh, torch.linalg.eigvals),
        *(torch.linalg.cond, torch.linalg.matrix_rank, torch.linalg.matrix_norm, torch.linalg.norm),
        *(torch.norm, torch.functional.norm, "norm"),
    }
)
"""Functions and methods that need no vectors of a decomposition, unless it is differentiated."""

_EXTREMES: Final[Mapping[Any, Callable[..., Any]]] = {size_min: torch.sym_min, size_max: torch.sym_max}


def _call(node: Node, args: Any, kwargs: Any) -> Any:
    match node.op:
        case "call_function":
            assert callable(node.target)
            if node.target in _EXTREMES:  # symbolic ones stay so
                return _EXTREMES[node.target](*args)
            if _seeds(node.target):
                raise UnsupportedProgramError(
                    "AOT119",
                    f"the graph calls {node.name}, which sets the state of a random number generator",
                )
            function = COMPOSITES.get(node.target, node.target)
            if opaque_calls.is_torchs(function):
                return call_with_out(function, args, kwargs)
            return opaque_calls.call(node, function, args, kwargs)
        case "call_method":
            composite = COMPOSITES.get(getattr(torch.Tensor, str(node.target), None))
            if composite is not None and isinstance(args[0], torch.Tensor):
                return composite(*args, **kwargs)
            return getattr(args[0], str(node.target))(*args[1:], **kwargs)
    raise UnsupportedProgramError(
        "AOT100", f"node {node.name} calls a module", action="lift parameters and buffers to placeholders"
    )
