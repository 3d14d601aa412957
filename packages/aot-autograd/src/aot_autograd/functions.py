"""Standalone use: compile a function or a module ahead of time without any capture.

Calls are told apart by structure, tensor metadata and grad mode; each new combination is traced and compiled once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch.utils import _pytree as pytree

from aot_autograd.decompositions import NOTHING, Decompositions
from aot_autograd.functionalization.out_arguments import WrittenOut
from aot_autograd.joint.backward_effects import WritingBackwardError
from aot_autograd.partition import Partitioner, save_everything
from aot_autograd.pipeline import GraphCompiler, compile_traced, trace
from aot_autograd.recording.record import Recorder
from fx_interface.backend import CompiledGraph
from fx_interface.errors import UnsupportedProgramError
from fx_interface.operators import OperatorLibrary
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.signature import InputDecl, InputKind
from fx_interface.source import LocalSource
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import spec_of

_log = logging.getLogger(__name__)


def aot_function(
    function: Callable[..., Any],
    *,
    operators: OperatorLibrary,
    forward_compiler: GraphCompiler,
    backward_compiler: GraphCompiler | None = None,
    inference_compiler: GraphCompiler | None = None,
    partition: Partitioner = save_everything,
    decompositions: Decompositions = NOTHING,
) -> Callable[..., Any]:
    """``function`` of tensors (nested in tuples, lists, dicts), compiled for each kind of arguments it is called with.

    Everything but tensors is a constant of one compilation. The function must not read tensors from elsewhere that
    require grad (AOT103), and what else it reads is read once, when it is traced. A function whose backward writes to
    tensors that it did not make (AOT126) runs as it is written.
    """
    parts = _Parts(
        operators, forward_compiler, backward_compiler, inference_compiler, partition, decompositions
    )
    compiled: dict[Any, tuple[CompiledGraph, Callable[[Sequence[Any]], Any]]] = {}

    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = pytree.tree_flatten((args, kwargs))
        tensors, places = _distinct(leaves)
        key = (structure, torch.is_grad_enabled(), places, tuple(map(_kind, leaves)))
        found = compiled.get(key)
        if found is None:
            found = compiled[key] = _compile(function, leaves, structure, parts)
        run, rebuild = found
        return rebuild(run(*tensors))

    return call


def _distinct(leaves: Sequence[Any]) -> tuple[list[torch.Tensor], tuple[int | None, ...]]:
    """The tensors among the leaves, each once, and for each leaf which of them it is."""
    found: dict[int, int] = {}
    tensors: list[torch.Tensor] = []
    places: list[int | None] = []
    for leaf in leaves:
        if not isinstance(leaf, torch.Tensor):
            places.append(None)
            continue
        place = found.setdefault(id(leaf), len(tensors))
        if place == len(tensors):
            tensors.append(leaf)
        places.append(place)
    return tensors, tuple(places)


@dataclass(frozen=True, slots=True)
class _Parts:
    operators: OperatorLibrary
    forward_compiler: GraphCompiler
    backward_compiler: GraphCompiler | None
    inference_compiler: GraphCompiler | None
    partition: Partitioner
    decompositions: Decompositions


def _compile(
    function: Callable[..., Any], leaves: list[Any], structure: Any, parts: _Parts
) -> tuple[CompiledGraph, Callable[[Sequence[Any]], Any]]:
    """``function`` for one kind of arguments: a graph of their tensors, and what makes the result of the graph's."""
    tensors, places = _distinct(leaves)
    for tensor in tensors:
        if tensor.layout is not torch.strided:
            raise UnsupportedProgramError("AOT102", f"an argument is a tensor of layout {tensor.layout}")
    shape: list[Any] = []
    # of tensors only the places: a compilation does not keep the tensors it was made from
    template = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]

    def program(recorder: Recorder | None, inputs: Sequence[Any]) -> list[Any]:
        filled = [
            leaf if place is None else inputs[place] for leaf, place in zip(template, places, strict=True)
        ]
        args, kwargs = pytree.tree_unflatten(filled, structure)
        results, tree = pytree.tree_flatten(_called(function, args, kwargs, traced=recorder is not None))
        shape[:] = [tree]
        return list(results)

    declared = [
        InputDecl(f"arg_{i}", InputKind.USER, spec_of(tensor), LocalSource(f"arg_{i}"))
        for i, tensor in enumerate(tensors)
    ]
    try:
        traced = trace(
            program,
            declared,
            tensors,
            operators=parts.operators,
            env=ShapeEnv(),
            partition=parts.partition,
            opens_grad=True,
            decompositions=parts.decompositions,
        )
    except WritingBackwardError as error:
        _log.warning("a function runs as it is written: %s", error)
        return (
            lambda *inputs: program(None, inputs),
            lambda results: pytree.tree_unflatten(list(results), shape[0]),
        )
    run = compile_traced(
        traced,
        forward_compiler=parts.forward_compiler,
        backward_compiler=parts.backward_compiler,
        inference_compiler=parts.inference_compiler,
        fallback=lambda *inputs: program(None, inputs),
    )
    return run, lambda results: pytree.tree_unflatten(list(results), shape[0])


def _called(function: Callable[..., Any], args: Any, kwargs: Any, *, traced: bool) -> Any:
    with WrittenOut() if traced else nullcontext():
        return function(*args, **kwargs)


def _kind(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        if leaf.layout is not torch.strided:
            return leaf.layout
        marks = leaf.is_conj(), leaf.is_neg()
        return (leaf.dtype, leaf.device, leaf.shape, leaf.stride(), leaf.requires_grad, leaf.is_leaf, *marks)
    if isinstance(leaf, slice):  # not hashable before CPython 3.12
        return (slice, _kind(leaf.start), _kind(leaf.stop), _kind(leaf.step))
    if isinstance(leaf, (float, complex)):  # by text: 0.0 is not -0.0, and NaN is NaN
        return (type(leaf), repr(leaf))
    return (type(leaf), leaf)


def aot_module(module: torch.nn.Module, **options: Any) -> Callable[..., Any]:
    """A module as ``aot_function`` compiles it; its parameters and buffers are inputs, so that they may be trained.

    ``options`` are those of ``aot_function``.
    """

    def function(tensors: list[torch.Tensor], training: bool, args: Any, kwargs: Any) -> Any:
        with _tensors_replaced(module, tensors):
            return module(*args, **kwargs)

    compiled = aot_function(function, **options)

    def call(*args: Any, **kwargs: Any) -> Any:
        tensors = [*module.parameters(), *module.buffers()]
        return compiled(tensors, module.training, args, kwargs)

    return call


@contextmanager
def _tensors_replaced(module: torch.nn.Module, tensors: Sequence[torch.Tensor]) -> Iterator[None]:
    """The module with ``tensors`` in place of its parameters and buffers, one for each distinct tensor."""
    originals = [*module.parameters(), *module.buffers()]
    replacement = {id(old): new for old, new in zip(originals, tensors, strict=True)}
    places: list[tuple[dict[str, Any], str, torch.Tensor]] = [
        (table, name, tensor)
        for owner in module.modules()
        for table in (owner._parameters, owner._buffers)
        for name, tensor in table.items()
        if tensor is not None
    ]
    try:
        for table, name, tensor in places:
            table[name] = replacement[id(tensor)]
        yield
    finally:
        for table, name, tensor in places:
            table[name] = tensor
