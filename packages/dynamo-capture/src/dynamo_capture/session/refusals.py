"""What a backend has refused: the same graph is not offered again, and the same reason is told once.

A refused frame runs as it is, and the frames that it calls are captured on their own. The first of them often hold the
very same graph (a module's ``__call__``, then its ``forward``), which would be refused for the same reason.
"""

from __future__ import annotations

from dataclasses import field
from types import CodeType
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from fx_interface.errors import UnsupportedProgramError
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.tensor_spec import SPEC_KEY

_PASS_ON = frozenset(
    id(function.__code__) for function in (torch.nn.Module._wrapped_call_impl, torch.nn.Module._call_impl)
)
"""Code that calls one function with its own arguments: captured on its own, it gives the graph of that function."""


@dataclass(slots=True)
class Refusals:
    """The refusals of one session's backend."""

    graphs: dict[str, UnsupportedProgramError] = field(default_factory=dict)
    told: set[tuple[str, str]] = field(default_factory=set)
    asked_again: WeakValueDictionary[int, CodeType] = field(default_factory=WeakValueDictionary)

    def earlier(self, graph_module: GraphModule) -> UnsupportedProgramError | None:
        """How the backend refused an equal graph, if it did."""
        return self.graphs.get(_form(graph_module)) if self.graphs else None

    def note(self, graph_module: GraphModule, error: UnsupportedProgramError) -> None:
        """The backend refuses this graph."""
        self.graphs[_form(graph_module)] = error

    def is_news(self, error: UnsupportedProgramError) -> bool:
        """Whether this reason has not been told yet; it counts as told from now on."""
        known = len(self.told)
        self.told.add((error.code, error.what))
        return len(self.told) > known

    def may_be_first_only(self, code: CodeType) -> bool:
        """Whether frames of ``code`` are refused for the first time: a first call may do what no later one does, as
        observers that give their buffers a size."""
        is_first = id(code) not in self.asked_again
        self.asked_again[id(code)] = code
        return is_first

    def makes_pointless(self, code: CodeType) -> bool:
        """Whether capturing frames of ``code`` would only repeat what its caller's or callee's capture tries."""
        return bool(self.graphs) and id(code) in _PASS_ON

    def clear(self) -> None:
        """Forget all."""
        self.graphs.clear()
        self.told.clear()
        self.asked_again.clear()


def _form(graph_module: GraphModule) -> str:
    """The graph as text in which nodes are numbered and inputs have no source."""
    numbers: dict[Node, int] = {}
    lines = []
    for node in graph_module.graph.nodes:
        numbers[node] = len(numbers)
        if node.op == "placeholder":
            lines.append(f"input {node.meta.get(SPEC_KEY)}")
            continue
        args: Any = map_arg((node.args, node.kwargs), lambda n: f"%{numbers[n]}")
        lines.append(f"{node.op} {node.target} {args} {node.meta.get(SPEC_KEY)}")
    return "\n".join(lines)
