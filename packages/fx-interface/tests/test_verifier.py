"""The verifier accepts valid graphs and names node, rule and line of each kind of invalid one."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

from fx_interface import (
    GraphBuilder,
    InputDecl,
    InputKind,
    InvalidGraphError,
    OutputDecl,
    OutputKind,
    Signature,
    SymSpec,
    TensorSpec,
    UserLocation,
    set_spec,
    size_max,
    verify,
)
from fx_interface.dialects import prims
from fx_interface.symbols import Relation, symbol

aten = torch.ops.aten
CPU = torch.device("cpu")
F32 = TensorSpec((4,), (1,), torch.float32, CPU)
MATRIX = TensorSpec((2, 3), (3, 1), torch.float32, CPU)


def relu(dialect: str = "aten") -> tuple[GraphBuilder, GraphModule]:
    builder = GraphBuilder(dialect)
    x = builder.input(F32)
    where = UserLocation("model.py", 12, "forward")
    target = {"aten": aten.relu.default, "torch": torch.relu, "prims": prims.tanh}[dialect]
    return builder, builder.build(builder.call(target, x, spec=F32, where=where))


def nodes(graph: GraphModule) -> dict[str, Any]:
    return {node.name: node for node in graph.graph.nodes}


def call_of(graph: GraphModule) -> Any:
    return next(node for node in graph.graph.nodes if node.op.startswith("call"))


@pytest.mark.parametrize("dialect", ["torch", "aten", "prims"])
def test_a_valid_graph_passes(dialect: str) -> None:
    _, graph = relu(dialect)
    verify(graph)
    verify(graph, dialect)


def test_an_error_names_node_rule_and_line() -> None:
    _, graph = relu()
    call_of(graph).target = aten.relu_.default
    with pytest.raises(InvalidGraphError) as caught:
        verify(graph)
    text = str(caught.value)
    assert caught.value.code == "FXI104"
    assert "node relu_default" in text
    assert "mutates an argument" in text
    assert "model.py:12 in forward" in text
    assert "functionalize" in text


def unknown_dialect(graph: GraphModule) -> None:
    graph.meta["dialect"] = "other"


def no_dialect(graph: GraphModule) -> None:
    del graph.meta["dialect"]


def no_spec(graph: GraphModule) -> None:
    del call_of(graph).meta["spec"]


def call_module(graph: GraphModule) -> None:
    graph.add_submodule("inner", torch.nn.ReLU())
    node = call_of(graph)
    node.op, node.target = "call_module", "inner"


def python_function(graph: GraphModule) -> None:
    call_of(graph).target = torch.relu


def method(graph: GraphModule) -> None:
    call = call_of(graph)
    call.op, call.target = "call_method", "relu"


def out_argument(graph: GraphModule) -> None:
    call_of(graph).target = aten.relu.out


def implicit_factory(graph: GraphModule) -> None:
    call = call_of(graph)
    call.target, call.args, call.kwargs = aten.full.default, ([4], 1.0), {"dtype": torch.float32}


def tensor_argument(graph: GraphModule) -> None:
    call = call_of(graph)
    call.target, call.args = aten.add.Tensor, (call.args[0], torch.ones(4))


def raw_symbol(graph: GraphModule) -> None:
    call = call_of(graph)
    call.target, call.args = aten.view.default, (call.args[0], [symbol("s0")])


def unknown_symbol(graph: GraphModule) -> None:
    set_spec(call_of(graph), TensorSpec((symbol("s99"),), (1,), torch.float32, CPU))


def wrong_rank(graph: GraphModule) -> None:
    set_spec(call_of(graph), replace(F32, strides=(1, 1)))


def wrong_order(graph: GraphModule) -> None:
    call = call_of(graph)
    call.args[0].prepend(call)


def late_placeholder(graph: GraphModule) -> None:
    call = call_of(graph)
    with graph.graph.inserting_after(call):
        set_spec(graph.graph.placeholder("late"), F32)


def unknown_input_name(graph: GraphModule) -> None:
    graph.meta["signature"] = Signature(
        (InputDecl("z", InputKind.USER, F32),), graph.meta["signature"].outputs
    )


def too_few_inputs(graph: GraphModule) -> None:
    graph.meta["signature"] = Signature((), graph.meta["signature"].outputs)


def other_spec(graph: GraphModule) -> None:
    graph.meta["signature"] = Signature(
        (InputDecl("x", InputKind.USER, MATRIX),), graph.meta["signature"].outputs
    )


def symbol_that_is_none(graph: GraphModule) -> None:
    node = nodes(graph)["x"]
    set_spec(node, SymSpec(4))
    graph.meta["signature"] = Signature(
        (InputDecl("x", InputKind.SYMBOL, SymSpec(4)),), graph.meta["signature"].outputs
    )


def too_many_outputs(graph: GraphModule) -> None:
    graph.meta["signature"] = replace(graph.meta["signature"], outputs=(OutputDecl(OutputKind.USER),) * 2)


def output_of_nothing(graph: GraphModule) -> None:
    graph.meta["signature"] = replace(
        graph.meta["signature"], outputs=(OutputDecl(OutputKind.MUTATED_INPUT, None),)
    )


def output_of_an_unknown_input(graph: GraphModule) -> None:
    graph.meta["signature"] = replace(
        graph.meta["signature"], outputs=(OutputDecl(OutputKind.MUTATED_INPUT, 7),)
    )


def bare_output(graph: GraphModule) -> None:
    node = nodes(graph)["output"]
    node.args = (node.args[0][0],)


def odd_result(graph: GraphModule) -> None:
    nodes(graph)["output"].args = (("text",),)


def attribute(graph: GraphModule) -> None:
    graph.weight = torch.nn.Parameter(torch.ones(4))
    call = call_of(graph)
    with graph.graph.inserting_before(call):
        held = set_spec(graph.graph.get_attr("weight"), F32)
    call.args = (held,)


@pytest.mark.parametrize(
    "code, damage",
    [
        ("FXI100", unknown_dialect),
        ("FXI100", no_dialect),
        ("FXI101", no_spec),
        ("FXI102", call_module),
        ("FXI103", python_function),
        ("FXI103", method),
        ("FXI104", out_argument),
        ("FXI105", implicit_factory),
        ("FXI106", late_placeholder),
        ("FXI106", unknown_input_name),
        ("FXI106", too_few_inputs),
        ("FXI106", other_spec),
        ("FXI106", symbol_that_is_none),
        ("FXI107", too_many_outputs),
        ("FXI107", output_of_nothing),
        ("FXI107", output_of_an_unknown_input),
        ("FXI107", bare_output),
        ("FXI107", odd_result),
        ("FXI108", tensor_argument),
        ("FXI110", unknown_symbol),
        ("FXI110", wrong_rank),
        ("FXI111", wrong_order),
        ("FXI113", attribute),
        ("FXI114", raw_symbol),
    ],
)
def test_each_rule(code: str, damage: Callable[[GraphModule], None]) -> None:
    _, graph = relu()
    verify(graph)
    damage(graph)
    with pytest.raises(InvalidGraphError, match=code):
        verify(graph)


def test_a_graph_is_held_to_the_dialect_it_names() -> None:
    _, graph = relu("torch")
    with pytest.raises(InvalidGraphError, match="FXI100"):
        verify(graph, "aten")


def test_the_torch_dialect_takes_public_functions_and_methods_only() -> None:
    _, graph = relu("torch")
    call = call_of(graph)
    call.target = lambda x: x
    with pytest.raises(InvalidGraphError, match="FXI103"):
        verify(graph)
    call.op, call.target = "call_method", "relu_"
    verify(graph)
    call.target = "nonsense"
    with pytest.raises(InvalidGraphError, match="FXI103"):
        verify(graph)


def test_results_of_operators_with_several() -> None:
    def graph(index: Any, spec: TensorSpec) -> GraphModule:
        builder = GraphBuilder("aten")
        x = builder.input(MATRIX)
        found = replace(MATRIX, sizes=(2, 2), strides=(2, 1))
        top = builder.call(aten.topk.default, x, 2, spec=(found, replace(found, dtype=torch.int64)))
        return builder.build(builder.call(operator.getitem, top, index, spec=spec))

    found = replace(MATRIX, sizes=(2, 2), strides=(2, 1))
    verify(graph(0, found))
    verify(graph(-1, replace(found, dtype=torch.int64)))
    for index, spec in ((2, found), (1, found), ("x", found)):
        with pytest.raises(InvalidGraphError, match="FXI108"):
            verify(graph(index, spec))


def test_size_arithmetic_denotes_what_it_computes() -> None:
    def graph(stated: Callable[[Any], Any]) -> GraphModule:
        builder = GraphBuilder("aten")
        size = builder.size(8)
        node = next(iter(builder.graph.nodes))
        larger = builder.call(size_max, node, 5, spec=SymSpec(stated(size)))
        return builder.build(builder.call(operator.add, larger, 1, spec=SymSpec(stated(size) + 1)))

    from fx_interface.symbols import maximum

    verify(graph(lambda size: maximum(size, 5)))
    with pytest.raises(InvalidGraphError, match="FXI109"):
        verify(graph(lambda size: size))


def test_learned_equalities_count() -> None:
    def graph(equal: bool) -> GraphModule:
        builder = GraphBuilder("prims")
        first, second = builder.size(8), builder.size(8)
        if equal:
            builder.env.require(Relation("==", first, second))
        one, other = replace(F32, sizes=(first,)), replace(F32, sizes=(second,))
        x, y = builder.input(one), builder.input(other)
        return builder.build(builder.call(prims.add, x, y, spec=one))

    verify(graph(True))
    with pytest.raises(InvalidGraphError, match="FXI112"):
        verify(graph(False))


def test_sub_graphs_are_verified_and_called_as_they_are() -> None:
    def graph(
        inner_target: Any = aten.neg.default, given: TensorSpec = F32, result: Any = (F32,), count: int = 1
    ) -> Any:
        inner = GraphBuilder("aten")
        body = inner.build(inner.call(inner_target, inner.input(F32), spec=F32))
        outer = GraphBuilder("aten")
        x, held = outer.input(given), outer.block(body)
        called = outer.call_block(held, *[x] * count, spec=result)
        return outer.build(outer.call(operator.getitem, called, 0, spec=result[0]))

    verify(graph())
    with pytest.raises(InvalidGraphError, match="FXI104"):
        verify(graph(inner_target=aten.neg_.default))
    for wrong in ({"given": MATRIX}, {"result": (MATRIX,)}, {"count": 2}):
        with pytest.raises(InvalidGraphError, match="FXI113"):
            verify(graph(**wrong))
