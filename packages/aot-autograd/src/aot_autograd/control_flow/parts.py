"""Whether a program has parts: branches or loops that data decide about."""

from __future__ import annotations

from torch.fx import GraphModule, Node

from fx_interface.regions import bodies_of, checkpointed, conditional, loop, scan

_STEERED = (conditional, loop, scan)


def has_parts(graph_module: GraphModule) -> bool:
    """Whether the program takes branches or loops that data decide about, in itself or in a checkpointed part."""
    return any(is_cut(node, graph_module) for node in graph_module.graph.nodes)


def is_cut(node: Node, owner: GraphModule) -> bool:
    """Whether a node is a branch or a loop, or a checkpointed part with one."""
    if node.op != "call_function":
        return False
    if node.target is checkpointed:
        return any(map(has_parts, bodies_of(node, owner)))
    return node.target in _STEERED
