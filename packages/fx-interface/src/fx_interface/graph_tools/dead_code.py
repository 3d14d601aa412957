"""Removal of unused nodes, as far as the graph's dialect says that a call has no effect."""

from __future__ import annotations

from torch.fx import GraphModule, Node

from fx_interface.dialects.dialect import Dialect
from fx_interface.regions import bodies_of, region_of
from fx_interface.verifier import dialect_of


def remove_dead_code(graph_module: GraphModule) -> int:
    """Erase, in place, every node without effect whose result is unused; returns how many. Inputs stay."""
    rules = dialect_of(graph_module)
    removed = 0
    for node in reversed(list(graph_module.graph.nodes)):
        if not node.users and is_removable(node, rules, graph_module):
            graph_module.graph.erase_node(node)
            removed += 1
    if removed:
        graph_module.recompile()
    return removed


def is_removable(node: Node, rules: Dialect, owner: GraphModule) -> bool:
    """Whether the node may be dropped when nothing uses it; a sub-graph's call, if all in it may."""
    if node.op in ("placeholder", "output"):
        return False
    if node.op == "get_attr":
        return True
    if region_of(node) is not None:
        return all(
            is_removable(n, rules, body)
            for body in bodies_of(node, owner)
            for n in body.graph.nodes
            if n.op not in ("placeholder", "output")
        )
    return rules.is_pure(node)
