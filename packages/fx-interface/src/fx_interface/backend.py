"""The backend protocol: what compiles a graph, and the interface version it was written for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from torch.fx import GraphModule

from fx_interface.python_runtime.own_builtins import STACK_PACKAGES
from fx_interface.python_runtime.runtimes import is_runtime, runs_compiled_code

__all__ = [
    "ENTRY_POINT_GROUP",
    "INTERFACE_VERSION",
    "STACK_PACKAGES",
    "Backend",
    "CompiledGraph",
    "is_runtime",
    "runs_compiled_code",
]

INTERFACE_VERSION: tuple[int, int] = (0, 1)
"""Major and minor version of the graph interface. A plug-in for (M, m) works with (M, n) where n >= m; before 1.0 a
change of the minor number may break."""

ENTRY_POINT_GROUP = "fx_interface.backends"
"""Entry-point group in which backends register: ``name = "module:object"``."""

CompiledGraph: TypeAlias = Callable[..., Sequence[Any]]
"""What a backend returns: called with the graph's inputs, positionally, it returns the outputs as a tuple or list."""


@runtime_checkable
class Backend(Protocol):
    """A callable as torch's custom backends are. A plug-in also has the attribute
    ``interface_version: tuple[int, int]``; a plain function that a user passes in needs none."""

    def __call__(self, graph_module: GraphModule, example_inputs: Sequence[Any], /) -> CompiledGraph:
        """Compile ``graph_module`` for inputs like the given ones."""
        ...
