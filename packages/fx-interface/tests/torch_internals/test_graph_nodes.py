"""A node made quickly is the node that torch makes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule, Node

from fx_interface.torch_internals import graph_nodes
from fx_interface.torch_internals.graph_nodes import call_node

ADD = torch.ops.aten.add.Tensor
CALLS: list[tuple[str, Any, tuple[Any, ...], dict[str, Any], str | None]] = [
    ("call_function", ADD, (0, 1), {"alpha": 2}, "add"),
    ("call_function", ADD, ((0, [1, 0]), {"of": 1}), {}, "add"),
    ("call_function", ADD, (), {"self": 0, "other": [1]}, None),
    ("call_function", torch.cat, ([0, 0, 1], 1), {}, "max"),
    ("call_method", "size", (0, 1), {}, None),
    ("call_function", torch.rand, (), {}, None),
]


def _with_nodes(value: Any, nodes: list[Node]) -> Any:
    """Numbers in lists and at the top replaced by nodes."""
    if isinstance(value, (tuple, list)):
        return type(value)(_with_nodes(item, nodes) for item in value)
    if isinstance(value, dict):
        return {key: _with_nodes(item, nodes) for key, item in value.items()}
    return nodes[value] if value in (0, 1) else value


def _built(make: Any) -> Graph:
    graph = Graph()
    nodes = [graph.placeholder("x"), graph.placeholder("add_1")]
    for op, target, args, kwargs, name in CALLS:
        made = make(graph, op, target, _with_nodes(args, nodes), _with_nodes(kwargs, nodes), name)
        assert made is graph._root.prev
    graph.output(nodes[0])
    return graph


def _shown(graph: Graph) -> list[str]:
    return [
        f"{n.op} {n.name} {n.target} {n.args} {n.kwargs} {list(n.users)} {n.all_input_nodes}"
        for n in graph.nodes
    ]


def test_it_is_the_node_that_torch_makes() -> None:
    quick, slow = _built(call_node), _built(Graph.create_node)
    assert _shown(quick) == _shown(slow)
    quick.lint()
    assert len(quick.nodes) == len(slow.nodes)
    assert GraphModule(torch.nn.Module(), quick).code == GraphModule(torch.nn.Module(), slow).code


@pytest.mark.parametrize("target", [ADD, torch.cat, torch.rand])
def test_it_is_found_and_replaced_as_any_node(target: Any) -> None:
    quick, slow = _built(call_node), _built(Graph.create_node)
    names = [[n.name for n in graph.find_nodes(op="call_function", target=target)] for graph in (quick, slow)]
    assert names[0] == names[1] != []
    first, second, *_ = quick.nodes
    first.replace_all_uses_with(second)
    assert not first.users
    assert all(first not in node.all_input_nodes for node in quick.nodes)


NAMES = [
    *("add", "add", "add_1", "add", "add_7", "add_7", "add", "max", "max", "for", "a.b", "", "3d"),
    *("x_", "x_", "_1", "_1", "_", "_", "torch", "Bmm", "é", "add_01", "add_x2", "add_x2", None, None),
]


def test_names_are_those_that_torch_gives() -> None:
    quick, slow = Graph(), Graph()
    for name in NAMES:
        call_node(quick, "call_function", ADD, (), {}, name)
        slow.create_node("call_function", ADD, (), {}, name)
    assert [node.name for node in quick.nodes] == [node.name for node in slow.nodes]
    assert quick._graph_namespace._base_count == slow._graph_namespace._base_count


def test_who_waits_for_new_nodes_is_told() -> None:
    module = GraphModule(torch.nn.Module(), Graph())
    told: list[str] = []
    module._register_create_node_hook(lambda node: told.append(node.name))
    call_node(module.graph, "call_function", ADD, (), {}, "add")
    assert told == ["add"]


def test_nodes_are_made_where_torch_inserts_them() -> None:
    graph = Graph()
    first = graph.placeholder("x")
    last = graph.output(first)
    with graph.inserting_before(last):
        made = call_node(graph, "call_function", ADD, (first, first), {})
    assert list(graph.nodes) == [first, made, last]
    assert first < made < last
    graph.erase_node(made)
    assert len(graph.nodes) == 2


def test_this_torch_is_known() -> None:
    assert graph_nodes._KNOWN, "Graph.create_node has changed: see graph_nodes.py"
