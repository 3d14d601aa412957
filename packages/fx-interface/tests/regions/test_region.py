"""Regions of every kind are verified, printed, stored, hashed and removed like other calls."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

from fx_interface import (
    REGIONS,
    GraphBuilder,
    InvalidGraphError,
    TensorSpec,
    bodies_of,
    canonical_hash,
    checkpointed,
    differentiable,
    from_json,
    print_graph,
    remove_dead_code,
    to_json,
    verify,
)
from fx_interface.regions import region

F32 = TensorSpec((4,), (1,), torch.float32, torch.device("cpu"))
WIDE = TensorSpec((4, 4), (4, 1), torch.float32, torch.device("cpu"))


def body(*targets: Any, inputs: int = 1, results: int = 1) -> GraphModule:
    """A chain of operations on the first input, of which the last ``results`` values are returned."""
    builder = GraphBuilder("torch")
    value, *_ = [builder.input(F32) for _ in range(inputs)]
    values = [value]
    for target in targets:
        values.append(builder.call(target, values[-1], spec=F32))
    return builder.build(*values[-results:])


def checkpoint_graph(dialect: str = "torch", given: TensorSpec = F32, inner: Any = torch.sin) -> GraphModule:
    outer = GraphBuilder(dialect)
    x = outer.input(given)
    called = outer.call(checkpointed, outer.block(body(inner)), x, spec=(F32,))
    return outer.build(outer.call(operator.getitem, called, 0, spec=F32))


def function_graph(backward: GraphModule | None = None, **options: Any) -> GraphModule:
    outer = GraphBuilder("torch")
    x = outer.input(F32)
    forward = outer.block(body(torch.sin, torch.exp, results=2), "there")
    held = outer.block(body(torch.neg, inputs=2) if backward is None else backward, "back")
    called = outer.call(differentiable, forward, held, x, spec=(F32,), **{"results": 1, **options})
    return outer.build(outer.call(operator.getitem, called, 0, spec=F32))


@pytest.mark.parametrize("make", [checkpoint_graph, function_graph])
def test_a_region_is_valid_stored_and_hashed(make: Any) -> None:
    graph = make()
    verify(graph)
    again = from_json(to_json(graph))
    assert print_graph(again) == print_graph(graph)
    assert canonical_hash(again) == canonical_hash(graph)
    x = torch.randn(4)
    assert torch.equal(again(x)[0], graph(x)[0])


def test_the_hash_depends_on_what_is_inside() -> None:
    hashes = {canonical_hash(checkpoint_graph(inner=f)) for f in (torch.sin, torch.cos)}
    hashes |= {canonical_hash(function_graph(once=once)) for once in (False, True)}
    assert len(hashes) == 4


def test_the_text_names_the_region_and_its_sub_graphs() -> None:
    assert "= checkpointed %block(%x)" in print_graph(checkpoint_graph())
    assert "= differentiable %there %back(%x, results=1)" in print_graph(function_graph())


@pytest.mark.parametrize(
    "graph",
    [
        lambda: checkpoint_graph(given=WIDE),
        lambda: function_graph(results=3),
        lambda: function_graph(results="all"),
        lambda: function_graph(backward=body(torch.neg, inputs=1)),
        lambda: function_graph(backward=body(torch.neg, inputs=2, results=2)),
        lambda: function_graph(backward=body(torch.neg, inputs=3)),
    ],
)
def test_a_call_that_does_not_fit_is_refused(graph: Any) -> None:
    with pytest.raises(InvalidGraphError, match="FXI113"):
        verify(graph())


def test_only_captured_graphs_hold_regions_of_autograd() -> None:
    with pytest.raises(InvalidGraphError, match="FXI103"):
        verify(checkpoint_graph("aten"))


def test_a_sub_graph_is_used_by_regions_only() -> None:
    outer = GraphBuilder("torch")
    held = outer.block(body(torch.sin))
    with pytest.raises(InvalidGraphError, match="FXI102"):
        verify(outer.build(outer.call(torch.sin, held, spec=F32)))


def test_a_region_without_its_sub_graph_is_refused() -> None:
    outer = GraphBuilder("torch")
    x = outer.input(F32)
    with pytest.raises(InvalidGraphError, match="FXI113"):
        verify(outer.build(outer.call(checkpointed, x, spec=(F32,))))


def test_an_unused_region_is_removed_unless_it_has_effects() -> None:
    for target, kept in ((operator.neg, False), (torch.relu_, True)):
        outer = GraphBuilder("torch")
        x = outer.input(F32)
        outer.call(checkpointed, outer.block(body(target)), x, spec=(F32,))
        graph = outer.build(x)
        remove_dead_code(graph)
        assert any(node.target is checkpointed for node in graph.graph.nodes) == kept


def test_the_sub_graphs_of_a_call_are_found() -> None:
    graph = function_graph()
    (node,) = graph.graph.find_nodes(op="call_function", target=differentiable)
    assert [len(found.graph.nodes) for found in bodies_of(node, graph)] == [4, 4]


def test_a_region_is_declared_once() -> None:
    with pytest.raises(ValueError, match="declared twice"):
        region("checkpointed", parts=("checkpoint_body",), check=lambda call: None)(lambda body: body())
    assert {declared.name for declared in REGIONS.values()} >= {"call", "checkpointed", "differentiable"}
