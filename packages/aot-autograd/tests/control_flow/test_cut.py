"""Cutting a part out of a graph."""

from __future__ import annotations

import operator

import pytest
import torch
from torch.fx import Graph, GraphModule

from aot_autograd.control_flow.cut import Cutter
from fx_interface.errors import UnsupportedProgramError
from fx_interface.signature import InputKind, signature_of
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import SPEC_KEY, SymSpec, spec_of

SPEC = spec_of(torch.ones(3))


def test_a_part_reads_the_rest_as_inputs_and_computes_sizes_again() -> None:
    env = ShapeEnv()
    size = env.create_symbol(5)
    graph = Graph()
    x, n = graph.placeholder("x"), graph.placeholder("n")
    a = graph.call_function(torch.sin, (x,))
    doubled = graph.call_function(operator.mul, (n, 2))
    b = graph.call_function(operator.mul, (a, doubled))
    graph.output((b,))
    for node in (x, a, b):
        node.meta[SPEC_KEY] = SPEC
    n.meta[SPEC_KEY], doubled.meta[SPEC_KEY] = SymSpec(size), SymSpec(size * 2)
    whole = GraphModule(torch.nn.Module(), graph)
    (atom,) = env.symbols
    part = Cutter(whole, [atom], {}, env).cut([b], [b])
    assert part.inputs == (a,)
    signature = signature_of(part.graph_module)
    assert signature is not None
    assert [declared.kind for declared in signature.inputs] == [InputKind.USER, InputKind.SYMBOL]
    (found,) = part.graph_module(torch.ones(3), 5)
    assert found.tolist() == [10, 10, 10]


def test_a_number_from_data_does_not_cross() -> None:
    env = ShapeEnv()
    graph = Graph()
    x = graph.placeholder("x")
    count = graph.call_method("item", (x,))
    a = graph.call_function(operator.mul, (x, count))
    graph.output((a,))
    x.meta[SPEC_KEY] = a.meta[SPEC_KEY] = SPEC
    count.meta[SPEC_KEY] = SymSpec(env.create_symbol(None))
    whole = GraphModule(torch.nn.Module(), graph)
    with pytest.raises(UnsupportedProgramError, match="AOT124"):
        Cutter(whole, [], {}, env).cut([a], [a])


def test_a_number_from_data_that_is_a_symbol_by_now_is_passed_as_one() -> None:
    env = ShapeEnv()
    graph = Graph()
    x = graph.placeholder("x")
    count = graph.call_method("size", (x, 0))
    a = graph.call_function(operator.mul, (x, count))
    graph.output((a,))
    x.meta[SPEC_KEY] = a.meta[SPEC_KEY] = SPEC
    count.meta[SPEC_KEY] = SymSpec(env.create_symbol(None))
    whole = GraphModule(torch.nn.Module(), graph)
    part = Cutter(whole, list(env.symbols), {}, env).cut([a], [a])
    assert part.inputs == (x,)
    (found,) = part.graph_module(torch.ones(3), 7)
    assert found.tolist() == [7, 7, 7]
