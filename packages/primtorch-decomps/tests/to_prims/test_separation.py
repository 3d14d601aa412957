"""Results own their memory where the operators' results do."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule

from fx_interface.signature import DIALECT_KEY
from fx_interface.tensor_spec import SPEC_KEY, spec_of
from fx_interface.verifier import verify
from primtorch_decomps import LIBRARY, decompose

aten = torch.ops.aten


def run(x: torch.Tensor, calls: list[tuple[Any, tuple[Any, ...]]], returned: list[int]) -> tuple[Any, ...]:
    """Results of a graph: an operand that is an int in a list names an earlier value, 0 is the input."""
    from fx_interface.symbols import ShapeEnv

    graph, env = Graph(), ShapeEnv()
    nodes = [graph.placeholder("x")]
    nodes[0].meta[SPEC_KEY] = spec_of(x)
    for op, args in calls:
        ready = tuple(nodes[a[0]] if isinstance(a, list) else a for a in args)
        specs = [a.meta[SPEC_KEY] if isinstance(a, torch.fx.Node) else a for a in ready]
        nodes.append(graph.call_function(op, ready))
        nodes[-1].meta[SPEC_KEY] = LIBRARY.infer(op, specs, {}, env)
    graph.output(tuple(nodes[place] for place in returned))
    module = GraphModule(torch.nn.Module(), graph)
    module.meta[DIALECT_KEY] = "aten"
    prims = decompose(module)
    verify(prims)
    return (x, *prims(x))


def memory(values: tuple[torch.Tensor, ...]) -> int:
    """How many pieces of memory the values lie in."""
    return len({value.untyped_storage().data_ptr() for value in values})


def test_copies_are_not_merged() -> None:
    calls = [(aten.add.Tensor, ([0], 1.0)), (aten.clone.default, ([1],)), (aten.clone.default, ([1],))]
    assert memory(run(torch.ones(3), calls, [1, 2, 3])) == 4


@pytest.mark.parametrize(
    "op, args", [(aten.sum.default, ([0],)), (aten.amax.default, ([0],)), (aten.mean.dim, ([0], ()))]
)
def test_a_reduction_of_nothing_is_a_copy(op: Any, args: tuple[Any, ...]) -> None:
    x, found = run(torch.tensor(2.0), [(op, args)], [1])
    assert memory((x, found)) == 2
    assert found == x


def test_different_operators_with_one_formula_have_results_of_their_own() -> None:
    calls = [(aten.add.Tensor, ([0], 1.0)), (aten.add.Scalar, ([0], 1.0))]
    assert memory(run(torch.ones(3), calls, [1, 2])) == 3


def test_views_stay_views() -> None:
    x = torch.ones(2, 3)
    assert memory(run(x, [(aten.t.default, ([0],)), (aten.detach.default, ([0],))], [0, 1, 2])) == 1
    assert memory(run(x, [(aten.neg.default, ([0],)), (aten.t.default, ([1],))], [1, 2])) == 2
