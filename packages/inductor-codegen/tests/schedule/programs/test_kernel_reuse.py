"""Groups are taken for equal only if their kernels would be."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.fx import Node

from fx_interface.dialects import prims as p
from inductor_codegen.lower.lowering import lower
from inductor_codegen.schedule.fusion.grouping import group_values
from inductor_codegen.schedule.programs.kernel_reuse import GroupKey
from inductor_codegen.testing import ExampleGraph

Make = Callable[[ExampleGraph, Node, Node], Node]


def key(make: Make, x: torch.Tensor) -> object:
    graph = ExampleGraph()
    a, b = graph.input(x), graph.input(torch.randn(4, 6), "y")
    lowered, _ = lower(graph.build(make(graph, a, b)))
    (group,) = group_values(lowered).groups.values()
    return GroupKey(group, lowered).key


def scaled(number: float) -> Make:
    return lambda graph, a, b: graph.call(p.add, graph.call(p.mul, a, number), b)


def test_equal_formulas_have_equal_keys() -> None:
    assert key(scaled(2.0), torch.randn(4, 6)) == key(scaled(2.0), torch.randn(4, 6))


@pytest.mark.parametrize(
    ("make", "x"),
    [
        (scaled(3.0), torch.randn(4, 6)),
        (scaled(2), torch.randn(4, 6)),
        (scaled(2.0), torch.randn(6, 4).t()),
        (lambda g, a, b: g.call(p.add, g.call(p.mul, b, 2.0), a), torch.randn(6, 4).t()),
        (lambda g, a, b: g.call(p.add, g.call(p.mul, a, 2.0), a), torch.randn(4, 6)),
        (lambda g, a, b: g.call(p.sub, g.call(p.mul, a, 2.0), b), torch.randn(4, 6)),
    ],
)
def test_other_formulas_have_other_keys(make: Make, x: torch.Tensor) -> None:
    assert key(make, x) != key(scaled(2.0), torch.randn(4, 6))
