"""The text form shows every node with its spec, the user's lines, sub-graphs, and what is known of sizes."""

from __future__ import annotations

import operator

import torch

from fx_interface import (
    GraphBuilder,
    InputKind,
    ObjectSpec,
    OutputDecl,
    OutputKind,
    SymFloatSpec,
    SymSpec,
    TensorSpec,
    UserLocation,
    print_graph,
    print_spec,
)
from fx_interface.dialects import prims
from fx_interface.source import LocalSource, SizeSource
from fx_interface.symbols import Relation, floordiv

CPU = torch.device("cpu")
F32 = TensorSpec((4,), (1,), torch.float32, CPU)


def test_a_whole_graph() -> None:
    builder = GraphBuilder("aten")
    size = builder.size(8, name="n")
    x = builder.input(TensorSpec((size, 4), (4, 1), torch.float32, CPU, True, 0), source=LocalSource("x"))
    w = builder.input(F32, InputKind.BUFFER, name="w")
    where = UserLocation("model.py", 3, "forward")
    half = TensorSpec((floordiv(size, 2), 8), (8, 1), torch.float32, CPU, False, 0)
    view = builder.call(torch.ops.aten.view.default, x, [floordiv(size, 2), 8], spec=half, where=where)
    total = builder.call(torch.ops.aten.sum.dim_IntList, view, [0], True, dtype=torch.float64, spec=F32)
    builder.env.require(Relation("<", size, 100))
    graph = builder.build(
        total,
        w,
        None,
        outputs=[
            OutputDecl(OutputKind.USER),
            OutputDecl(OutputKind.MUTATED_INPUT, 2),
            OutputDecl(OutputKind.USER),
        ],
    )
    assert print_graph(graph) == (
        "graph(aten):\n"
        "  %n: int s0 = symbol input\n"
        "  %x: float32[s0, 4] alias 0 grad = user input\n"
        "  %w: float32[4] = buffer input\n"
        "  %floordiv: int (s0)//(2) = operator.floordiv(%n, 2)\n"
        "  %view_default: float32[(s0)//(2), 8] alias 0 = aten.view.default(%x, [%floordiv, 8])"
        "   # model.py:3 in forward\n"
        "  %sum_dim_int_list: float32[4] = aten.sum.dim_IntList(%view_default, [0], True, dtype=float64)\n"
        "  return %sum_dim_int_list, mutated_input of input 2 %w, None\n"
        "where s0 in 2.. (8 seen)\n"
        "given s0 < 100\n"
    )
    assert "model.py" not in print_graph(graph, locations=False)


def test_methods_prims_and_sub_graphs() -> None:
    inner = GraphBuilder("prims")
    body = inner.build(inner.call(prims.neg, inner.input(F32), spec=F32))
    outer = GraphBuilder("prims")
    x, held = outer.input(F32), outer.block(body)
    called = outer.call_block(held, x, spec=(F32,))
    text = print_graph(outer.build(outer.call(operator.getitem, called, 0, spec=F32)))
    assert (
        "  %block = block:\n    %x: float32[4] = user input\n    %neg: float32[4] = prims.neg(%x)\n    return %neg\n"
        in text
    )
    assert "%call_block: (float32[4]) = call %block(%x)" in text
    torch_graph = GraphBuilder("torch")
    y = torch_graph.input(F32)
    sliced = torch_graph.call(operator.getitem, y, (slice(1, None), None), spec=F32)
    text = print_graph(torch_graph.build(torch_graph.method("add_", sliced, 1, alpha=2, spec=F32)))
    assert "operator.getitem(%x, (slice(1, None, None), None))" in text
    assert "%getitem.add_(1, alpha=2)" in text


def test_specs() -> None:
    strided = TensorSpec((4, 4), (1, 4), torch.int64, torch.device("cuda", 0))
    texts = [
        print_spec(s) for s in (strided, SymSpec(3), SymFloatSpec(2.0), ObjectSpec("Generator"), None, [F32])
    ]
    assert texts == [
        "int64[4, 4] strides [1, 4] cuda:0",
        "int 3",
        "float",
        "Generator",
        "None",
        "[float32[4]]",
    ]


def test_sources_and_data_dependent_sizes_are_shown() -> None:
    builder = GraphBuilder("torch")
    builder.env.create_symbol(8, SizeSource(LocalSource("x"), 0), high=64)
    builder.env.create_symbol(None, low=0)
    text = print_graph(builder.build())
    assert "where s0 in 2..64 (8 seen, x.size(0))" in text
    assert "where u1 in 0.. (from data)" in text
    assert "return nothing" in text
