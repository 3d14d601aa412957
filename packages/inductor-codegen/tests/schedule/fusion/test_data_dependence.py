"""Graphs whose library calls tell sizes and numbers: read in time, checked in time."""

from __future__ import annotations

import pytest
import torch

from fx_interface.dialects.prims import PRIMS
from fx_interface.graph import materialize, symbol_nodes
from fx_interface.graph_tools.builder import GraphBuilder
from fx_interface.symbols import Relation, indicator
from fx_interface.tensor_spec import SymSpec, TensorSpec
from inductor_codegen import CodegenOptions, compile_graph
from inductor_codegen.ir.program import CallExtern, RunKernel
from inductor_codegen.pipeline import plan

CPU = torch.device("cpu")
ATEN = torch.ops.aten


def _integers(*sizes) -> TensorSpec:
    strides = [1]
    for size in reversed(sizes[1:]):
        strides.insert(0, strides[0] * size)
    return TensorSpec(tuple(sizes), tuple(strides[: len(sizes)]), torch.int64, CPU)


def _graph():
    """nonzero(x) * 2, how many rows it has, and the numbers up to n - 1, for an n below 5 in a tensor."""
    builder = GraphBuilder("prims")
    x = builder.input(_integers(6), name="x")
    number = builder.input(_integers(), name="number")
    count = builder.env.create_symbol(None, low=0, high=6)
    n = builder.env.create_symbol(None, low=None)
    rows = builder.call(ATEN.nonzero.default, x, spec=_integers(count, 1))
    size = builder.call(ATEN.sym_size.int, rows, 0, spec=SymSpec(count))
    doubled = builder.call(PRIMS["add"], rows, rows, spec=_integers(count, 1))
    item = builder.call(ATEN._local_scalar_dense.default, number, spec=SymSpec(n))
    for relation in (Relation("<", n, 5), Relation("<=", 0, n)):
        stated = materialize(builder.graph, indicator(relation), symbol_nodes(builder.graph))
        builder.call(ATEN._assert_scalar.default, stated, f"{relation} is false", spec=None)
    places = builder.call(PRIMS["iota"], item, 0, 1, torch.int64, CPU, spec=_integers(n))
    return builder.build(doubled, size, places)


def test_what_computes_with_a_number_waits_for_its_checks() -> None:
    program = plan(_graph())
    names = [
        step.op._opname if isinstance(step, CallExtern) else "kernel"
        for step in program.steps
        if isinstance(step, (CallExtern, RunKernel))
    ]
    assert names.index("_local_scalar_dense") < names.index("_assert_scalar")
    last_check = len(names) - 1 - names[::-1].index("_assert_scalar")
    assert last_check < len(names) - 1 - names[::-1].index("kernel")
    assert {symbol.name for symbol in program.born()} == {"u0", "u1"}


def test_sizes_and_numbers_are_read_in_each_call() -> None:
    compiled = compile_graph(_graph(), CodegenOptions(cache=False))
    for x in (torch.tensor([0, 3, 0, 1, 0, 0]), torch.zeros(6).long(), torch.ones(6).long()):
        for n in (0, 1, 4):
            doubled, count, places = compiled(x, torch.tensor(n))
            assert torch.equal(doubled, x.nonzero() * 2)
            assert (type(count), count) == (int, int(x.count_nonzero()))
            assert torch.equal(places, torch.arange(n))
    for n in (5, -1):
        with pytest.raises(RuntimeError, match="is false"):
            compiled(torch.ones(6).long(), torch.tensor(n))
