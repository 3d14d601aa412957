"""The pass from aten to prims: values, strides, lines, dead and equal code, tables, symbolic sizes, sub-graphs."""

from __future__ import annotations

import gc
import operator
from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule, Node

from fx_interface.dialects.prims import PrimOp
from fx_interface.errors import UserLocation
from fx_interface.graph import call_block
from fx_interface.signature import DIALECT_KEY, SHAPE_ENV_KEY
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import SymSpec, TensorSpec, spec_of
from fx_interface.verifier import verify
from primtorch_decomps import DECOMPOSITIONS, LIBRARY, decompose
from primtorch_decomps.prims import Call, PrimTensor, ops

ATEN = torch.ops.aten
CPU = torch.device("cpu")


class Writer:
    """Writes an aten graph, with specs by the library."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.env = ShapeEnv()

    def input(self, spec: Any) -> Node:
        node = self.graph.placeholder(f"x{len(self.graph.nodes)}")
        node.meta["spec"] = spec_of(spec) if isinstance(spec, torch.Tensor) else spec
        return node

    def call(self, op: Any, *args: Any, **kwargs: Any) -> Node:
        node = self.graph.call_function(op, args, kwargs)

        def spec(value: Any) -> Any:
            if isinstance(value, Node):
                found = value.meta["spec"]
                return found.expr if isinstance(found, SymSpec) else found
            return [spec(item) for item in value] if isinstance(value, (list, tuple)) else value

        node.meta["spec"] = LIBRARY.infer(op, tuple(map(spec, args)), kwargs, self.env)
        node.meta["where"] = UserLocation("model.py", len(self.graph.nodes))
        return node

    def item(self, node: Node, index: int) -> Node:
        made = self.graph.call_function(operator.getitem, (node, index))
        made.meta["spec"] = node.meta["spec"][index]
        return made

    def finish(self, *results: Any) -> GraphModule:
        self.graph.output(tuple(results))
        module = GraphModule(torch.nn.Module(), self.graph)
        module.meta.update({DIALECT_KEY: "aten", SHAPE_ENV_KEY: self.env})
        return module


def targets(module: GraphModule) -> list[str]:
    calls = [n.target for n in module.graph.nodes if n.op == "call_function"]
    return [target.name if isinstance(target, PrimOp) else str(target) for target in calls]


def test_values_lines_and_origins() -> None:
    writer = Writer()
    x = writer.input(torch.ones(2, 8))
    normal = writer.call(ATEN.native_layer_norm.default, x, [8], None, None, 1e-5)
    gelu = writer.call(ATEN.gelu.default, writer.item(normal, 0))
    module = writer.finish(gelu)
    prims = decompose(module)
    verify(prims, "prims")
    real = torch.randn(2, 8)
    torch.testing.assert_close(prims(real)[0], module(real)[0])
    assert prims.meta[DIALECT_KEY] == "prims"
    assert module.meta[DIALECT_KEY] == "aten"
    made = [n for n in prims.graph.nodes if n.op == "call_function"]
    assert all(isinstance(n.meta["where"], UserLocation) for n in made)
    assert {n.meta["origin"] for n in made} == {"aten::native_layer_norm", "aten::gelu"}


def test_unused_code_is_dropped_and_equal_code_shared() -> None:
    writer = Writer()
    x = writer.input(torch.ones(3))
    one, two = writer.call(ATEN.sin.default, x), writer.call(ATEN.sin.default, x)
    writer.call(ATEN.exp.default, x)
    product = writer.call(ATEN.mul.Tensor, one, two)
    assert targets(decompose(writer.finish(product))) == ["sin", "mul"]


def test_random_numbers_are_neither_dropped_nor_shared() -> None:
    writer = Writer()
    x = writer.input(torch.ones(3))
    one, two = writer.call(ATEN.bernoulli.p, x, 0.5), writer.call(ATEN.bernoulli.p, x, 0.5)
    writer.call(ATEN.rand_like.default, x)
    assert targets(decompose(writer.finish(one, two))) == ["aten.bernoulli.p"] * 2 + [
        "aten.rand_like.default"
    ]


def test_results_carry_eager_s_strides() -> None:
    writer = Writer()
    x = writer.input(torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last))
    results = [
        writer.call(ATEN.relu.default, x),
        writer.call(ATEN.clone.default, x, memory_format=torch.contiguous_format),
        writer.call(ATEN.clone.default, x),
        writer.call(ATEN.permute.default, x, [0, 2, 3, 1]),
    ]
    prims = decompose(writer.finish(*results))
    found = [node.meta["spec"].strides for node in list(prims.graph.nodes)[-1].args[0]]
    assert found == [(60, 1, 15, 3), (60, 20, 5, 1), (60, 1, 15, 3), (60, 15, 3, 1)]


def test_a_layout_is_settled_for_one_operator_only() -> None:
    """The same primitive under two layouts is two nodes; equal results are copies of one another."""
    writer = Writer()
    x = writer.input(torch.ones(3, 4).t())
    kept = [writer.call(ATEN.clone.default, x) for _ in range(2)]
    dense = [writer.call(ATEN.clone.default, x, memory_format=torch.contiguous_format) for _ in range(2)]
    outputs = list(decompose(writer.finish(*kept, *dense)).graph.nodes)[-1].args[0]
    assert outputs[1].args == (outputs[0],)
    assert outputs[3].args == (outputs[2],)
    assert outputs[0].meta["spec"].strides == (1, 4)
    assert outputs[2].meta["spec"].strides == (3, 1)


def test_operators_outside_the_table_stay() -> None:
    writer = Writer()
    x = writer.input(torch.ones(3))
    module = writer.finish(writer.call(ATEN.silu.default, x))
    assert targets(decompose(module)) == ["sigmoid", "mul"]
    assert targets(decompose(module, DECOMPOSITIONS.without(ATEN.silu.default))) == ["aten.silu.default"]

    def mine(x: Any) -> Any:
        return x / (1.0 + ops.exp(-x))

    assert targets(decompose(module, DECOMPOSITIONS | {ATEN.silu.default: mine})) == [
        "neg",
        "exp",
        "add",
        "div",
    ]


def test_a_decomposition_that_gives_another_shape_is_not_used(caplog: pytest.LogCaptureFixture) -> None:
    writer = Writer()
    module = writer.finish(writer.call(ATEN.silu.default, writer.input(torch.ones(3))))

    def wrong(x: Any) -> Any:
        return ops.reshape(x, (3, 1))

    assert targets(decompose(module, DECOMPOSITIONS | {ATEN.silu.default: wrong})) == ["aten.silu.default"]
    assert "silu" in caplog.text


def test_complex_numbers_stay_with_aten() -> None:
    writer = Writer()
    x = writer.input(torch.ones(3, dtype=torch.complex64))
    assert targets(decompose(writer.finish(writer.call(ATEN.mul.Tensor, x, x)))) == ["aten.mul.Tensor"]


def symbolic_module(with_symbols: bool) -> tuple[GraphModule, Any]:
    """mean over [n, 4] of x + 1, viewed as [2 * n, 2]."""
    writer = Writer()
    n = writer.env.create_symbol(6)
    size = writer.input(SymSpec(n)) if with_symbols else None
    x = writer.input(TensorSpec((n, 4), (4, 1), torch.float32, CPU))
    total = writer.call(ATEN.mean.default, writer.call(ATEN.add.Tensor, x, 1))
    shape: Any = 2
    if size is not None:
        shape = writer.graph.call_function(operator.mul, (size, 2))
        shape.meta["spec"] = SymSpec(2 * n)
        view = writer.call(ATEN.view.default, x, [shape, 2])
    else:
        view = writer.call(ATEN.view.default, x, [-1, 2])
    return writer.finish(total, view), n


@pytest.mark.parametrize("with_symbols", [True, False])
def test_sizes_are_made_into_nodes(with_symbols: bool) -> None:
    module, n = symbolic_module(with_symbols)
    prims = decompose(module)
    verify(prims, "prims")
    for count in (6, 2, 9):
        x = torch.randn(count, 4)
        args = (count, x) if with_symbols else (x,)
        mean, view = prims(*args)
        torch.testing.assert_close(mean, (x + 1).mean())
        assert view.shape == (2 * count, 2)
    specs = [node.meta["spec"] for node in prims.graph.nodes if isinstance(node.meta.get("spec"), SymSpec)]
    assert 2 * n in [spec.expr for spec in specs]
    assert len({spec.expr for spec in specs}) == len(specs)


def test_repeated_sub_graphs_are_decomposed_once_each() -> None:
    inner = Writer()
    body = inner.finish(inner.call(ATEN.silu.default, inner.input(torch.ones(3))))
    writer = Writer()
    x = writer.input(torch.ones(3))
    root = torch.nn.Module()
    root.block = body
    value = x
    for _ in range(2):
        block = writer.graph.get_attr("block")
        block.meta["spec"] = None
        called = writer.graph.call_function(call_block, (block, value))
        called.meta["spec"] = (spec_of(torch.ones(3)),)
        value = writer.item(called, 0)
    writer.graph.output((value,))
    module = GraphModule(root, writer.graph)
    module.meta.update({DIALECT_KEY: "aten", SHAPE_ENV_KEY: writer.env})
    prims = decompose(module)
    assert targets(prims.block) == ["sigmoid", "mul"]
    real = torch.randn(3)
    silu = torch.nn.functional.silu
    torch.testing.assert_close(prims(real)[0], silu(silu(real)))


def test_a_prims_graph_is_left_as_it_is() -> None:
    writer = Writer()
    x = writer.input(torch.ones(2, 3))
    once = decompose(writer.finish(writer.call(ATEN._softmax.default, x, 1, False)))
    twice = decompose(once)
    assert targets(once) == targets(twice)
    assert all(isinstance(n.target, PrimOp) for n in twice.graph.nodes if n.op == "call_function")


def test_tuples_of_library_calls() -> None:
    writer = Writer()
    x = writer.input(torch.ones(4, 5))
    result = writer.call(ATEN.topk.default, x, 2)
    module = writer.finish(writer.item(result, 0), writer.item(result, 1))
    prims = decompose(module)
    real = torch.randn(4, 5)
    for one, other in zip(prims(real), module(real), strict=True):
        assert torch.equal(one, other)


def test_what_was_recorded_goes_with_the_pass() -> None:
    """Not only when Python searches for cycles, which takes longer the more there are."""
    writer = Writer()
    x = writer.input(torch.ones(2, 8))
    module = writer.finish(writer.call(ATEN.gelu.default, writer.call(ATEN.add.Tensor, x, x)))
    gc.collect()
    gc.disable()
    try:
        decompose(module)
        assert not [one for one in gc.get_objects() if type(one) in (Call, PrimTensor)]
    finally:
        gc.enable()


def test_equal_specs_are_one_object() -> None:
    writer = Writer()
    x = writer.input(torch.ones(2, 8))
    prims = decompose(writer.finish(writer.call(ATEN.sin.default, x), writer.call(ATEN.cos.default, x)))
    sin, cos = (node.meta["spec"] for node in prims.graph.nodes if node.op == "call_function")
    assert sin is cos
