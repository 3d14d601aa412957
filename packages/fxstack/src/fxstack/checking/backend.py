"""A backend that checks another one: each graph that it compiles runs beside eager, once, before it is used."""

from __future__ import annotations

import contextlib
import logging
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.fx import Graph, GraphModule

from fx_interface import INTERFACE_VERSION, Backend, CompiledGraph
from fx_interface.execution.undo import (
    RandomStates,
    all_or_nothing,
    is_all_or_nothing,
    random_states,
    set_random_states,
    undoing,
)
from fx_interface.python_runtime.gc_pause import collector_paused
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack.checking.differences import BOUNDS, differences
from fxstack.checking.eligible import reason_of_call, reason_of_graph
from fxstack.checking.observe import Observed, observe
from fxstack.checking.report import report
from fxstack.checking.uninitialized import Filling
from fxstack.checking.widest import Rounding, is_widest
from fxstack.verification.compare import Difference, distance, not_by_luck
from fxstack.verification.referee import Referee

logger = logging.getLogger("fxstack")
_NUDGED = 3
"""Runs of eager that tell luck from accuracy, where a value is farther from float64 than it may be."""


@dataclass(frozen=True, slots=True)
class Checking:
    """Compiles by ``backend``. A graph whose first call differs from eager's on copies of the inputs is reported
    (FXS401) and run by torch's operators from then on; one that cannot be run twice is used unchecked (FXS402)."""

    backend: Backend | Callable[..., Any]
    name: str | Callable[..., Any] = ""
    interface_version: tuple[int, int] = INTERFACE_VERSION

    def __call__(self, graph_module: GraphModule, example_inputs: Sequence[Any]) -> CompiledGraph:
        """Compile the graph; the check waits for the first call."""
        captured = _copied(graph_module)  # a backend may change the graph that it is given
        compiled = self.backend(graph_module, example_inputs)
        reason = reason_of_graph(captured)
        if reason is not None:
            logger.info("FXS402: a graph is not checked: %s", reason)
            return compiled
        first = _FirstCall(captured, compiled, self.name or self.backend)

        def call(*inputs: Any) -> Sequence[Any]:
            return first.chosen(inputs)(*inputs)

        return all_or_nothing(call) if is_all_or_nothing(compiled) else call


def checked(backend: Backend | Callable[..., Any], name: str | Callable[..., Any] = "") -> Backend:
    """``backend`` under the check."""
    return backend if isinstance(backend, Checking) else Checking(backend, name)


class _FirstCall:
    """Decides at a graph's first call that can be checked what runs the graph from then on."""

    def __init__(
        self, captured: GraphModule, compiled: CompiledGraph, backend: str | Callable[..., Any]
    ) -> None:
        self._captured = captured
        self._compiled = compiled
        self._backend = backend
        self._chosen: CompiledGraph | None = None

    def chosen(self, inputs: Sequence[Any]) -> CompiledGraph:
        """What is to be called with these inputs."""
        if self._chosen is None:
            reason = reason_of_call(inputs)
            if reason is not None:
                logger.info("FXS402: a call of a graph is not checked: %s", reason)
                return self._compiled
            self._chosen = self._compiled  # what the check itself calls is not checked
            self._chosen = self._checked(inputs)
        return self._chosen

    def _checked(self, inputs: Sequence[Any]) -> CompiledGraph:
        with _nobody_notices():
            found, eager = self._compare(inputs)
        if not found:
            return self._compiled
        report(self._captured, inputs, found, self._backend)
        forward: CompiledGraph = self._captured.forward
        if not is_all_or_nothing(self._compiled):
            return forward
        written = [
            index for index in range(len(inputs)) if eager.facts.get(f"input {index} after the call: written")
        ]
        return undoing(forward, written, draws=True)

    def _compare(self, inputs: Sequence[Any]) -> tuple[list[Difference], Observed]:
        states = random_states()
        refereed = True
        with Filling(1) as filling:
            eager = observe(self._captured.forward, inputs, Referee())
        if "exception" in eager.facts:  # perhaps the referee's
            set_random_states(states)
            refereed, eager = False, observe(self._captured.forward, inputs)
        other = None
        if filling.met:
            set_random_states(states)
            with Filling(0):
                other = observe(self._captured.forward, inputs)
        set_random_states(states)
        compiled = observe(self._compiled, inputs)
        found = differences(eager, compiled, other, refereed)
        if refereed and any(not item.why for item in found):
            found = not_by_luck(
                found, [self._distances(inputs, eager, states, seed) for seed in range(_NUDGED)], BOUNDS
            )
        return found, eager

    def _distances(
        self, inputs: Sequence[Any], before: Observed, states: RandomStates, seed: int
    ) -> dict[str, float]:
        """How far from float64 eager is where the inputs differ in their last places, and where what is computed in
        float64 does."""
        set_random_states(states)
        generator = torch.Generator().manual_seed(seed)
        with Filling(1):
            eager = observe(self._captured.forward, inputs, Referee(), generator)
        found = {name: distance(value, eager.exact.get(name)) for name, value in eager.values.items()}
        if any(map(is_widest, eager.values.values())):
            set_random_states(states)
            with Filling(1):
                moved = observe(self._captured.forward, inputs, Rounding(generator))
            widest = [name for name, value in moved.values.items() if is_widest(value)]
            found |= {name: distance(moved.values[name], before.exact.get(name)) for name in widest}
        return found


@contextlib.contextmanager
def _nobody_notices() -> Iterator[None]:
    """Random numbers, hooks on saved tensors and the cache of autocast are as if nothing had run."""
    states, dice = random_states(), random.getstate()
    cached = torch.is_autocast_cache_enabled()
    autograd: Any = torch._C._autograd
    hidden = autograd._top_saved_tensors_default_hooks(False) is not None
    torch.set_autocast_cache_enabled(False)
    if hidden:
        autograd._push_saved_tensors_default_hooks(_same, _same)
    try:
        with collector_paused():
            yield
    finally:
        if hidden:
            autograd._pop_saved_tensors_default_hooks()
        torch.set_autocast_cache_enabled(cached)
        set_random_states(states)
        random.setstate(dice)


def _same(value: Any) -> Any:
    return value


def _copied(module: GraphModule) -> GraphModule:
    """The graph with nodes of its own."""
    graph = Graph()
    result = graph.graph_copy(module.graph, {}, return_output_node=True)
    if isinstance(result, tuple):
        value, output = result
        graph.output(value).meta = dict(output.meta)
    made = GraphModule(module, graph)
    made.meta = dict(module.meta)
    return made
