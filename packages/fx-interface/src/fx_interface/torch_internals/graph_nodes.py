"""Nodes of ``torch.fx`` graphs, made at the cost that making one need have.

``Graph.create_node`` searches the arguments it is given for torch's symbolic numbers, reads names and targets by
regular expressions, and asks whether the new node has a name already. A compilation makes nodes by the ten thousand, of
a few hundred targets. What it does besides is done here step by step, where its code does what this was written for;
else, and where somebody waits for new nodes, it is called.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from torch.fx import Graph, Node
from torch.fx import graph as _torchs

_set_args: Callable[[Node, tuple[Any, ...]], None] = vars(Node)["args"].fset
_set_kwargs: Callable[[Node, dict[str, Any]], None] = vars(Node)["kwargs"].fset

_STEPS = {
    "_graph_namespace": "create_name associate_name_with_obj",
    "_target_to_str": "",
    "_insert": "",
    "_find_nodes_lookup_table": "insert",
    "owning_module": "_create_node_hooks",
    "_len": "",
}
"""What ``create_node`` uses of a graph, and of what it finds there."""
_LOOKED_AT = {"_name_regex", "_illegal_char_regex", "_illegal_names"}
"""Constants by which ``create_name`` judges a candidate."""
_NUMBERED = re.compile(r"_\d+$")


def _does_what_is_known() -> bool:
    """Whether the methods of this torch's graphs touch what they did when this module was written."""
    touched = {name for step, names in _STEPS.items() for name in (step, *names.split())}
    namespace: Any = _torchs._Namespace
    return (
        touched <= set(Graph.create_node.__code__.co_names)
        and _own_names(Graph.create_node) == _own_names(touched)
        and _own_names(namespace.create_name) == {"_obj_to_name", "_used_names", "_base_count"} | _LOOKED_AT
        and _own_names(namespace.associate_name_with_obj) == {"_obj_to_name"}
    )


def _own_names(used: Any) -> set[str]:
    """The private names among those that a function uses."""
    names = used if isinstance(used, set) else used.__code__.co_names
    return {name for name in names if name.startswith("_") and not name.endswith("__")}


_KNOWN = _does_what_is_known()


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
    if not _KNOWN or getattr(graph.owning_module, "_create_node_hooks", None):
        node = graph.create_node(op, target, name=name)
        if args:
            _set_args(node, args)
        if kwargs:
            _set_kwargs(node, kwargs)
        return node
    namespace: Any = graph._graph_namespace
    name = _unused_name(namespace, _name_of(graph, target) if name is None else name)
    node = Node(graph, name, op, target, args, kwargs)
    namespace._obj_to_name[node] = name
    graph._insert(node)
    graph._find_nodes_lookup_table.insert(node)
    graph._len += 1
    return node


_names: dict[int, tuple[Any, str]] = {}
"""Names of call targets by the target's address; each target is kept, so that no other one gets its address."""


def _name_of(graph: Graph, target: Any) -> str:
    found = _names.get(id(target))
    if found is None:
        name = graph._target_to_str(target)
        if _is_lasting(target):
            _names[id(target)] = target, name
        return name
    return found[1]


_LASTING = ("torch", "_operator", "builtins", "math", "fx_interface")


def _is_lasting(target: Any) -> bool:
    """Whether a target is torch's or the stack's own, of which there are so many, and not an object of the program."""
    module = getattr(target, "__module__", None) or getattr(type(target), "__module__", "")
    return type(target) is not str and isinstance(module, str) and module.split(".")[0] in _LASTING


def _unused_name(namespace: Any, candidate: str) -> str:
    """What ``namespace.create_name(candidate, None)`` gives."""
    if not _is_plain(candidate):
        found: str = namespace.create_name(candidate, None)
        return found
    used, counts = namespace._used_names, namespace._base_count
    number = counts.get(candidate, 0)
    made = candidate
    while made in used:
        number += 1
        made = f"{candidate}_{number}"
    used.add(made)
    counts[candidate] = number
    return made


@functools.lru_cache(4096)
def _is_plain(candidate: str) -> bool:
    """Whether a name is an identifier that ends in no number and hides nothing of Python's."""
    return (
        candidate.isascii()
        and candidate.isidentifier()
        and _NUMBERED.search(candidate) is None
        and candidate not in _torchs._illegal_names
    )
