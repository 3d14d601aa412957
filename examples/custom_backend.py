"""A backend of your own: a function from a graph to a callable. This one merges sines of the same value.

    python examples/custom_backend.py

A package makes its backend known by name through the entry-point group ``fx_interface.backends``; see
integration_tests/example_backend for one that passes the conformance suite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

import fxstack


def merging(graph_module: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Sequence[Any]]:
    """Calls of ``torch.sin`` on one value become one call; the rest is left to the stack's own backend."""
    known: dict[Node, Node] = {}
    removed = 0
    for node in list(graph_module.graph.nodes):
        if node.target is torch.sin:
            first = known.setdefault(node.args[0], node)
            if first is not node:
                node.replace_all_uses_with(first)
                graph_module.graph.erase_node(node)
                removed += 1
    print(f"{removed} calls of sin were computed before")
    graph_module.recompile()
    return fxstack.backend("inductor")(graph_module, example_inputs)


@fxstack.compile(backend=merging)
def waves(x: Tensor) -> Tensor:
    """Two equal sines, and another one."""
    return torch.sin(x) * 2 + torch.sin(x) * torch.sin(x + 1)


def main() -> None:
    """Compare with the function as it is."""
    x = torch.linspace(0, 3, 1000)
    wanted = torch.sin(x) * 2 + torch.sin(x) * torch.sin(x + 1)
    torch.testing.assert_close(waves(x), wanted)


if __name__ == "__main__":
    main()
