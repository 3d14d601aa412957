"""Foreign backends under symbolic sizes: such a backend compiles for the sizes that it is shown.

What captures for our backends hands on a graph that takes symbols, with the first call's numbers as examples. A backend
that knows our interface reads the specs. Any other may take the numbers for constants, as stock's code generators do
with plain integers, and would answer every size as it does the first. So it compiles once for each set of sizes; one
that gives the graph itself back, which holds for all sizes, is asked once.

It is called within ``surroundings``, where it finds beside its graph what torch's capture leaves there
(``fxstack.adapters.tracing_context``).
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeAlias

import torch
from torch.fx import GraphModule

from fx_interface import INTERFACE_VERSION, Backend, CompiledGraph
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.signature import SHAPE_ENV_KEY

Surroundings: TypeAlias = Callable[[GraphModule, Sequence[Any]], AbstractContextManager[None]]
"""What a graph is compiled within, with its example inputs."""


def no_surroundings(graph_module: GraphModule, inputs: Sequence[Any]) -> AbstractContextManager[None]:
    """For backends of which it is known what they look at."""
    return nullcontext()


MOST_VERSIONS = 64
"""For further sizes the graph runs as captured."""


@dataclass(frozen=True, slots=True)
class BySizes:
    """``backend`` as one that keeps to the interface."""

    backend: Callable[..., Any]
    surroundings: Surroundings = no_surroundings
    interface_version: tuple[int, int] = INTERFACE_VERSION

    def __call__(self, graph_module: GraphModule, example_inputs: Sequence[Any]) -> CompiledGraph:
        """Compile for the examples' sizes; for others when they come."""
        env = graph_module.meta.get(SHAPE_ENV_KEY)
        if env is None or not env.symbols:
            return self._compile(graph_module, example_inputs)
        made = self._compile(_copied(graph_module), example_inputs)
        if _is_graph(made):
            return made
        versions = {_sizes(example_inputs): made}

        def run(*inputs: Any) -> Any:
            sizes = _sizes(inputs)
            version = versions.get(sizes)
            if version is None:
                full = len(versions) >= MOST_VERSIONS
                version = graph_module.forward if full else self._compile(_copied(graph_module), inputs)
                versions[sizes] = version
            return version(*inputs)

        return run

    def _compile(self, graph_module: GraphModule, inputs: Sequence[Any]) -> CompiledGraph:
        with self.surroundings(graph_module, inputs):
            compiled: CompiledGraph = self.backend(graph_module, list(inputs))
        return compiled


@dataclass(frozen=True, slots=True)
class WithKeywords:
    """A backend that is called with the ``mode`` and ``options`` that the user has passed, as torch calls it."""

    backend: Callable[..., Any]
    keywords: tuple[tuple[str, Any], ...]

    def __call__(self, graph_module: GraphModule, example_inputs: list[Any]) -> Any:
        """What the backend makes of it."""
        return self.backend(graph_module, example_inputs, **dict(self.keywords))


def by_sizes(backend: Backend | Callable[..., Any], surroundings: Surroundings = no_surroundings) -> Backend:
    """A backend that keeps to the interface, whatever the user has passed."""
    return backend if hasattr(backend, "interface_version") else BySizes(backend, surroundings)


def _copied(graph_module: GraphModule) -> GraphModule:
    """The same graph for a backend to change; its parts are shared."""
    copied = GraphModule(graph_module, copy.deepcopy(graph_module.graph))
    copied.meta = dict(graph_module.meta)
    return copied


def _is_graph(compiled: Any) -> bool:
    """Whether a backend has given back the graph that it was given."""
    while isinstance(compiled, functools.partial) and not (compiled.args or compiled.keywords):
        compiled = compiled.func
    return isinstance(getattr(compiled, "__self__", compiled), GraphModule)


def _sizes(inputs: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(
        (tuple(value.shape), value.stride()) if isinstance(value, torch.Tensor) else value
        for value in inputs
        if isinstance(value, (torch.Tensor, int))
    )
