"""Nodes of ``torch.fx`` graphs, made at the cost that making one need have.

``Graph.create_node`` searches the arguments it is given for torch's symbolic numbers, which takes longer than all else
that it does, and ``node.args = ...`` enters the node into the graph's table of nodes once more. The setter of the
property ``args`` does neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.fx import Graph, Node

_set_args: Callable[[Node, tuple[Any, ...]], None] = vars(Node)["args"].fset
_set_kwargs: Callable[[Node, dict[str, Any]], None] = vars(Node)["kwargs"].fset


def call_node(
    graph: Graph,
    op: str,
    target: str | Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    name: str | None = None,
) -> Node:
    """What ``graph.create_node(op, target, args, kwargs, name)`` makes of arguments among which torch's symbolic
    numbers do not occur."""
    node = graph.create_node(op, target, name=name)
    if args:
        _set_args(node, args)
    if kwargs:
        _set_kwargs(node, kwargs)
    return node
