"""Kernels that the threads of a call share: every way of writing one, over sizes that do not divide evenly."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch.fx import Node

from fx_interface.dialects import prims as p
from inductor_codegen import CodegenOptions, compile_graph
from inductor_codegen.codegen.cpp.loops.threads import Sharing, sharing_of
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph


@pytest.fixture
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def points(graph: ExampleGraph, x: Node) -> Node:
    return graph.call(p.neg, x)


def rows(graph: ExampleGraph, x: Node) -> Node:
    return graph.call(p.amax, x, [2])


def columns(graph: ExampleGraph, x: Node) -> Node:
    return graph.call(p.sum, x, [0])


def middle(graph: ExampleGraph, x: Node) -> Node:
    return graph.call(p.sum, x, [1])


def total(graph: ExampleGraph, x: Node) -> Node:
    return graph.call(p.sum, x, [0, 1, 2])


@pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
@pytest.mark.parametrize(
    ("make", "sharing"),
    [
        (points, Sharing.CALLER),
        (rows, Sharing.CALLER),
        (columns, Sharing.CALLER),
        (middle, Sharing.CALLER),
        (total, Sharing.KERNEL),
    ],
)
@pytest.mark.usefixtures("three_threads")
def test_shares_make_up_the_whole(
    make: Callable[[ExampleGraph, Node], Node], sharing: Sharing, symbolic: bool
) -> None:
    graph = ExampleGraph()
    sizes = [int(graph.builder.env.hint(graph.symbol())) for _ in range(2)] if symbolic else [11, 13]
    x = torch.rand(*sizes, 600, dtype=torch.float64)
    node = make(graph, graph.input(x))
    module = graph.build(node)
    (kernel,) = plan(module).kernels
    assert sharing_of(kernel) is sharing
    compiled = compile_graph(module, CodegenOptions(cache=False))
    for shape in [(11, 13), (1, 64), (70, 1), (2, 5), (0, 3)] if symbolic else [(11, 13)]:
        given = torch.rand(*shape, 600, dtype=torch.float64)
        if make is rows and 0 in shape:
            continue
        (found,) = compiled(*shape, given) if symbolic else compiled(given)
        wanted = {
            points: lambda t: -t,
            rows: lambda t: t.amax(2),
            columns: lambda t: t.sum(0),
            middle: lambda t: t.sum(1),
            total: lambda t: t.sum(),
        }[make](given)
        torch.testing.assert_close(found, wanted, rtol=1e-12, atol=0)


@pytest.mark.usefixtures("three_threads")
def test_a_bad_index_in_one_share_is_an_error() -> None:
    graph = ExampleGraph()
    table = graph.input(torch.rand(7, 64))
    index = torch.zeros(900, dtype=torch.int64)
    module = graph.build(graph.call(p.index, table, [graph.input(index, "index"), None]))
    compiled = compile_graph(module, CodegenOptions(cache=False))
    values = torch.rand(7, 64)
    assert torch.equal(compiled(values, index)[0], values[index])
    index[899] = 7
    with pytest.raises(IndexError):
        compiled(values, index)
