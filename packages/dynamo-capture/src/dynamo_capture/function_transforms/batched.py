"""A captured graph that only ``vmap`` surrounds is compiled with the ``vmap`` inside.

    torch.func.vmap(compiled)(x)     ->  the graph ``g`` of one slice; vmap(g), captured and compiled, gets ``x``

The wrapped tensors are unwrapped, level by level, and the results are wrapped again. What cannot be compiled so, or
raises, runs as torch's operators at the levels that are open, in whose words it is refused.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch.fx import GraphModule, Node

from dynamo_capture.graph.graph_builder import GraphOutput
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.tensor_spec import SPEC_KEY, TensorSpec
from fx_interface.torch_internals.function_levels import (
    Level,
    levels_aside,
    without_batches,
    wrapped_again,
)

_log = logging.getLogger("dynamo_capture")

_Dims: TypeAlias = tuple[int | None, ...]
_Compile: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class _Run:
    """The compiled function, and for each of its results the levels that have slices of it."""

    compiled: Callable[..., Sequence[Any]]
    batched: tuple[tuple[int, ...], ...]


class Batched:
    """Runs a graph of one slice for all slices. ``compile`` makes one graph of a function of plain tensors."""

    def __init__(
        self, module: GraphModule, levels: tuple[Level, ...], drawing: frozenset[Node], compile: _Compile
    ) -> None:
        self._module = module
        self._levels = levels
        self._drawing = drawing
        self._compile = compile
        self._runs: dict[tuple[_Dims, ...], _Run | None] = {}

    def __call__(self, *inputs: Any) -> Sequence[Any]:
        plain, dims = without_batches(inputs, len(self._levels))
        if dims not in self._runs:
            self._runs[dims] = self._made(dims)
        run = self._runs[dims]
        if run is None:
            return self._as_operators(inputs)
        try:
            with levels_aside():
                found = run.compiled(*plain)
        except (
            Exception
        ) as error:  # an operator's, worded otherwise where there are slices, or the compiler's
            in_operators = self._as_operators(inputs)
            self._runs[dims] = None
            _log.warning("a graph inside of vmap is not compiled, its operators run one by one: %s", error)
            return in_operators
        return tuple(wrapped_again(value, levels) for value, levels in zip(found, run.batched, strict=True))

    def _as_operators(self, inputs: Sequence[Any]) -> Sequence[Any]:
        found: Sequence[Any] = self._module.forward(*inputs)
        return found

    def _made(self, dims: tuple[_Dims, ...]) -> _Run | None:
        """The graph with a ``vmap`` for each level that has slices of an input. None if it draws random numbers for
        each slice of a level that has none, which ``vmap`` cannot tell."""
        places = self._module.graph.find_nodes(op="placeholder")
        (output,) = self._module.graph.find_nodes(op="output")
        results: Sequence[Node] = output.args[0]
        batched: list[list[int]] = [[] for _ in results]
        function: Callable[..., Any] = self._module.forward
        for number in range(len(self._levels), 0, -1):
            of_level: Any = dims[number - 1]
            drawn: frozenset[Node] = (
                frozenset() if self._levels[number - 1].randomness == "same" else self._drawing
            )
            if all(dim is None for dim in of_level):
                if drawn:
                    return None
                continue
            sliced = {place for place, dim in zip(places, of_level, strict=True) if dim is not None}
            for node in self._module.graph.nodes:
                if node in drawn or not sliced.isdisjoint(node.all_input_nodes):
                    sliced.add(node)
            out_dims: Any = tuple(0 if node in sliced else None for node in results)
            for index, node in enumerate(results):
                if node in sliced:
                    batched[index].insert(0, number)
            randomness = self._levels[number - 1].randomness
            function = torch.vmap(function, of_level, out_dims, randomness)

        def of_all_slices(*inputs: Any) -> Any:
            return function(*inputs)

        of_all_slices.__code__ = of_all_slices.__code__.replace()  # versions are kept for a code object
        return _Run(self._compile(of_all_slices), tuple(map(tuple, batched)))


def may_be_batched(levels: tuple[Level, ...], output: GraphOutput, results: Sequence[Any]) -> bool:
    """Whether there are only ``vmap``s, and the graph means for all slices what it means for each."""
    return (
        all(level.kind == "vmap" for level in levels)
        and not output.leaves
        and not (output.draws and (output.may_fail or output.mutates))
        and bool(results)
        and all(
            isinstance(node, Node) and isinstance(node.meta.get(SPEC_KEY), TensorSpec) for node in results
        )
    )
