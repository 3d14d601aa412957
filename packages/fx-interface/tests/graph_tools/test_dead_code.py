"""Unused calls go; what mutates, draws random numbers or asserts stays."""

from __future__ import annotations

import operator

import pytest
import torch

from fx_interface import GraphBuilder, SymSpec, TensorSpec, remove_dead_code
from fx_interface.dialects import prims

aten = torch.ops.aten
F32 = TensorSpec((4,), (1,), torch.float32, torch.device("cpu"))


def targets(graph: torch.fx.GraphModule) -> list[object]:
    return [node.target for node in graph.graph.nodes if node.op.startswith("call")]


def test_a_chain_of_unused_calls_goes() -> None:
    builder = GraphBuilder("aten")
    x = builder.input(F32)
    unused = builder.call(aten.exp.default, builder.call(aten.neg.default, x, spec=F32), spec=F32)
    assert not unused.users
    graph = builder.build(builder.call(aten.relu.default, x, spec=F32))
    assert remove_dead_code(graph) == 2
    assert targets(graph) == [aten.relu.default]
    assert graph(torch.ones(4))[0].tolist() == [1.0] * 4
    assert remove_dead_code(graph) == 0


def test_effects_stay_in_aten() -> None:
    builder = GraphBuilder("aten")
    x = builder.input(F32)
    builder.call(aten.bernoulli.p, x, 0.5, spec=F32)
    builder.call(aten._assert_async.msg, x, "must hold", spec=None)
    builder.call(aten.copy_.default, x, x, spec=F32)
    assert remove_dead_code(builder.build(x)) == 0


def test_the_torch_dialect_removes_only_what_surely_has_no_effect() -> None:
    builder = GraphBuilder("torch")
    x = builder.input(F32)
    size = builder.method("size", x, 0, spec=SymSpec(4))
    builder.call(operator.add, size, 1, spec=SymSpec(5))
    builder.method("view", x, 2, 2, spec=F32)
    builder.method("add_", x, 1, spec=F32)
    builder.call(torch.rand_like, x, spec=F32)
    builder.call(operator.setitem, x, 0, 1.0, spec=None)
    graph = builder.build(x)
    assert remove_dead_code(graph) == 3
    assert targets(graph) == ["add_", torch.rand_like, operator.setitem]


@pytest.mark.parametrize("inner, removed", [(aten.neg.default, 2), (aten.rand_like.default, 0)])
def test_calls_of_sub_graphs_go_if_all_in_them_may(inner: object, removed: int) -> None:
    body = GraphBuilder("aten")
    y = body.input(F32)
    module = body.build(body.call(inner, y, spec=F32))  # type: ignore[arg-type]
    outer = GraphBuilder("aten")
    x, held = outer.input(F32), outer.block(module)
    outer.call_block(held, x, spec=(F32,))
    assert remove_dead_code(outer.build(x)) == removed


def test_inputs_stay_and_primitives_go() -> None:
    builder = GraphBuilder("prims")
    x, y = builder.input(F32), builder.input(F32)
    builder.call(prims.add, x, y, spec=F32)
    graph = builder.build(x)
    assert remove_dead_code(graph) == 1
    assert len(graph.graph.find_nodes(op="placeholder")) == 2
