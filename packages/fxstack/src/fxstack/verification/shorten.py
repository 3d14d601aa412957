"""The other end of a failing graph: what comes before its last operators becomes an input that holds eager's value.

``bisect`` cuts a graph off behind the operator that is at fault; here the operators that lead there are left out, as
long as what remains still fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Interpreter, Node

from fxstack.verification.bisect import Case
from fxstack.verification.trial import snapshot


def shortened(case: Case) -> Case:
    """The case with as few operators as were found to fail, none of which the last operator does not need.

    Operators at most 1, 2, 4, ... steps before the last one are kept, until the graph fails; then each that is left is
    tried to be left out. ``case`` itself where only the whole fails.
    """
    values = _values(case)
    last = [node for node in case.graph.graph.nodes if node.op == "call_function"][-1]
    if case.graph.graph.output_node().args != ((last,),):
        return case
    distance = 1
    while True:
        kept = _near(last, distance)
        made = _keeping(case, kept, values)
        if made is not None and made.differences():
            break
        if kept == _near(last, distance + 1):
            return case
        distance *= 2
    for node in sorted(kept - {last}, key=list(case.graph.graph.nodes).index):
        smaller = _keeping(case, kept - {node}, values)
        if smaller is not None and smaller.differences():
            kept, made = kept - {node}, smaller
    return made


def _near(last: Node, distance: int) -> set[Node]:
    """The operators from which at most ``distance - 1`` steps lead to ``last``, and ``last``."""
    found = {last}
    edge = {last}
    for _ in range(distance - 1):
        edge = {node for reader in edge for node in reader.all_input_nodes if node.op == "call_function"}
        found |= edge
    return found


def _values(case: Case) -> Mapping[Node, Any]:
    """What each node of the graph computes in eager, copied before a later operator may write to it."""
    values: dict[Node, Any] = {}

    class Noting(Interpreter):
        def run_node(self, node: Node) -> Any:
            value = super().run_node(node)
            if node.op != "output":
                values[node] = snapshot([value])[0] if isinstance(value, Tensor) else value
            return value

    torch.manual_seed(case.seed)
    Noting(case.graph).run(*snapshot(case.inputs))
    return values


def _keeping(case: Case, kept: set[Node], values: Mapping[Node, Any]) -> Case | None:
    """The case with these operators alone; None where one of them reads what is neither a tensor nor a number."""
    wanted = [node for node in case.graph.graph.nodes if node in kept]
    read = {source: None for node in wanted for source in node.all_input_nodes if source not in kept}
    given = [node for node in case.graph.graph.nodes if node in read and node.op != "get_attr"]
    if not all(isinstance(values.get(node), (Tensor, int, float)) for node in given):
        return None
    graph = Graph()
    copies: dict[Node, Node] = {}
    for node in given:
        copies[node] = graph.placeholder(node.name)
        copies[node].meta = dict(node.meta)
    for node in case.graph.graph.nodes:
        if node in kept or (node in read and node.op == "get_attr"):
            copies[node] = graph.node_copy(node, lambda old: copies[old])
    graph.output((copies[wanted[-1]],))
    return replace(case, graph=GraphModule(case.graph, graph), inputs=tuple(values[node] for node in given))
