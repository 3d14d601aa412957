"""Sizes become nodes that compute them, once each, and nodes give up what they carry."""

from __future__ import annotations

import operator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.fx import Graph, GraphModule

from fx_interface import (
    GraphBuilder,
    InvalidGraphError,
    SymSpec,
    TensorSpec,
    UserLocation,
    call_block,
    location_of_node,
    materialize,
    outputs,
    placeholders,
    set_spec,
    size_max,
    size_min,
    size_value,
    spec_of_node,
    stack_of_node,
    symbol_nodes,
)
from fx_interface.graph import block_of, output_node
from fx_interface.symbols import IntLike, ShapeEnv, Symbol, evaluate, floordiv, maximum, minimum, mod

F32 = TensorSpec((2,), (1,), torch.float32, torch.device("cpu"))


def graph_of_sizes(count: int) -> tuple[Graph, list[IntLike]]:
    graph, env, sizes = Graph(), ShapeEnv(), []
    for _ in range(count):
        size = env.create_symbol(4)
        sizes.append(size)
        set_spec(graph.placeholder(str(size)), SymSpec(size))
    return graph, sizes


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=6),
    st.data(),
)
def test_materialised_sizes_compute_their_value(
    steps: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    graph, sizes = graph_of_sizes(2)
    sizes = [3, 1, *sizes]
    rules = (operator.add, operator.sub, operator.mul, floordiv, mod, minimum, maximum)
    values = {Symbol("s0"): data.draw(st.integers(2, 30)), Symbol("s1"): data.draw(st.integers(2, 30))}
    for rule, i, j in steps:
        try:
            made = rules[rule](sizes[i % len(sizes)], sizes[j % len(sizes)])
            evaluate(made, values)
        except ZeroDivisionError:
            continue
        sizes.append(made)
    known = symbol_nodes(graph)
    nodes = [materialize(graph, size, known) for size in sizes]
    assert [materialize(graph, size, known) for size in sizes] == nodes
    assert [size_value(node) for node in nodes] == sizes
    graph.output(tuple(nodes))
    graph.lint()
    module = GraphModule({}, graph)
    assert module(*values.values()) == tuple(evaluate(size, values) for size in sizes)


def test_one_node_serves_uses_before_and_after() -> None:
    graph, (size,) = graph_of_sizes(1)
    known = symbol_nodes(graph)
    first = graph.call_function(torch.zeros, (known[Symbol("s0")],))
    wanted = materialize(graph, size * 2, known)
    with graph.inserting_before(first):
        assert materialize(graph, size * 2, known) is wanted
        graph.call_function(torch.zeros, (wanted,))
    graph.output(())
    graph.lint()


def test_an_erased_node_is_made_again() -> None:
    graph, (size,) = graph_of_sizes(1)
    known = symbol_nodes(graph)
    first = materialize(graph, size + 1, known)
    assert not isinstance(first, int)
    graph.erase_node(first)
    second = materialize(graph, size + 1, known)
    assert second is not first
    graph.output((second,))
    graph.lint()


def test_an_unknown_symbol_is_named() -> None:
    graph, (size,) = graph_of_sizes(1)
    with pytest.raises(KeyError, match="s0"):
        materialize(graph, size + 1, {})


def test_nodes_carry_spec_line_and_stack() -> None:
    graph = Graph()
    node = graph.placeholder("x")
    with pytest.raises(InvalidGraphError, match="FXI101"):
        spec_of_node(node)
    assert location_of_node(node) is None
    assert stack_of_node(node) == ()
    where = UserLocation("model.py", 4, "forward")
    assert set_spec(node, F32, where) is node
    assert spec_of_node(node) is F32
    assert location_of_node(node) == where
    assert stack_of_node(node) == (where,)
    outer = UserLocation("train.py", 9)
    node.meta["stack"] = (outer, where)
    assert stack_of_node(node) == (outer, where)


def test_inputs_and_outputs() -> None:
    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    with pytest.raises(InvalidGraphError, match="FXI107"):
        output_node(graph)
    graph.output(x)
    with pytest.raises(InvalidGraphError, match="not a tuple"):
        outputs(graph)
    output_node(graph).args = ((y, x),)
    assert placeholders(graph) == [x, y]
    assert outputs(graph) == (y, x)


def test_size_value_refuses_what_is_no_size() -> None:
    node = set_spec(Graph().placeholder("x"), F32)
    with pytest.raises(InvalidGraphError, match="FXI109"):
        size_value(node)
    with pytest.raises(InvalidGraphError, match="FXI109"):
        size_value(2.5)


def test_size_functions() -> None:
    assert (size_min(3, 5), size_max(3, 5)) == (3, 5)


def test_blocks_are_called() -> None:
    inner = GraphBuilder("aten")
    doubled = inner.build(inner.call(torch.ops.aten.mul.Tensor, inner.input(F32), 2.0, spec=F32))
    outer = GraphBuilder("aten")
    x = outer.input(F32)
    body = outer.block(doubled)
    for _ in range(3):
        called = outer.call_block(body, x, spec=(F32,))
        x = outer.call(operator.getitem, called, 0, spec=F32)
    module = outer.build(x)
    (result,) = module(torch.ones(2))
    assert result.tolist() == [8.0, 8.0]
    assert block_of(called, module) is doubled
    assert call_block(doubled, torch.ones(2))[0].tolist() == [2.0, 2.0]
    with pytest.raises(InvalidGraphError, match="FXI113"):
        block_of(x, module)
