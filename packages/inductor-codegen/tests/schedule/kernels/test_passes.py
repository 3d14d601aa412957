"""Passes: statements stand as early as they can, and expensive values are computed once a point."""

from __future__ import annotations

import torch
from torch.fx import Node

from fx_interface.dialects import prims as p
from inductor_codegen.ir.kernel import Accumulate, Keep, Kernel, Store
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper


def normalized(cost: str) -> Kernel:
    graph = ExampleGraph()
    x = graph.input(torch.randn(8, 40))
    grown: Node = graph.call(getattr(p, cost), x)
    total = graph.call(p.broadcast_in_dim, graph.call(p.sum, grown, [1]), [8, 40], [0])
    (kernel,) = plan(graph.build(graph.call(p.add, grown, total))).kernels
    return kernel


def test_expensive_value_is_kept() -> None:
    kernel = normalized("exp")
    assert [type(s) for s in kernel.passes[0].points] == [Keep, Accumulate]
    assert [type(s) for s in kernel.passes[1].points] == [Store]


def test_cheap_value_is_computed_again() -> None:
    kernel = normalized("neg")
    assert not any(isinstance(s, Keep) for step in kernel.passes for s in step.points)


def test_row_result_is_stored_after_its_pass() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(8, 40))
    total = graph.call(p.sum, x, [1])
    spread = graph.call(p.broadcast_in_dim, total, [8, 40], [0])
    (kernel,) = plan(graph.build(total, graph.call(p.sub, x, spread))).kernels
    assert [len(step.row) for step in kernel.passes] == [1, 0]


def test_independent_reductions_share_a_pass() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(8, 40))
    low, high = graph.call(p.amin, x, [1]), graph.call(p.amax, x, [1])
    (kernel,) = plan(graph.build(graph.call(p.sub, high, low))).kernels
    assert len(kernel.passes) == 1
    assert sum(isinstance(s, Accumulate) for s in kernel.passes[0].points) == 2


def test_value_of_many_loads_is_kept_where_rows_are_long() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(600, 40))
    for _ in range(4):
        x = graph.call(p.mul, x, graph.input(torch.randn(600, 40)))
    total = graph.call(p.broadcast_in_dim, graph.call(p.sum, x, [0]), [600, 40], [1])
    module = graph.build(graph.call(p.sub, x, total))
    (kernel,) = plan(module).kernels
    assert any(isinstance(s, Keep) for s in kernel.passes[0].points)
    torch.testing.assert_close(
        Stepper(plan(module))(*graph.examples)[0], module(*graph.examples)[0], rtol=1e-4, atol=1e-4
    )


def rounded(rows: int, columns: int, dim: int) -> Kernel:
    """Distances from a mean of what is rounded to 16 bits, squared: three passes."""
    graph = ExampleGraph()
    sizes = [rows, columns]

    def spread(total: Node) -> Node:
        return graph.call(p.broadcast_in_dim, total, sizes, [1 - dim])

    x, y = (graph.input(torch.randn(sizes), name) for name in "xy")
    added = graph.call(p.convert_dtype, graph.call(p.add, x, y), torch.bfloat16)
    wide = graph.call(p.convert_dtype, added, torch.float32)
    centred = graph.call(p.sub, wide, spread(graph.call(p.sum, wide, [dim])))
    square = graph.call(p.sum, graph.call(p.mul, centred, centred), [dim])
    module = graph.build(graph.call(p.mul, centred, spread(square)))
    (kernel,) = plan(module).kernels
    (made,), (expected,) = Stepper(plan(module))(*graph.examples), module(*graph.examples)
    torch.testing.assert_close(made, expected, rtol=1e-4, atol=1e-4)
    return kernel


def test_a_number_rounded_to_16_bits_is_kept_for_all_passes() -> None:
    """What is computed from it in a step is computed again, not kept as well."""
    kernel = rounded(8, 40, 1)
    kept = [[type(s) for s in step.points].count(Keep) for step in kernel.passes]
    assert kept == [1, 0, 0]


def test_columns_are_rounded_again() -> None:
    kernel = rounded(600, 40, 0)
    assert not any(isinstance(s, Keep) for step in kernel.passes for s in step.points)


def test_value_that_is_computed_again_is_stored_by_the_pass_that_stores_the_rest() -> None:
    graph = ExampleGraph()
    x, y = graph.input(torch.randn(8, 40)), graph.input(torch.randn(8, 40))
    added = graph.call(p.add, x, y)
    total = graph.call(p.broadcast_in_dim, graph.call(p.sum, added, [1]), [8, 40], [0])
    module = graph.build(added, graph.call(p.sub, added, total))
    made = plan(module)
    (kernel,) = made.kernels
    assert [[type(s) for s in step.points] for step in kernel.passes] == [[Accumulate], [Store, Store]]
    inputs = (torch.randn(8, 40), torch.randn(8, 40))
    torch.testing.assert_close(Stepper(made)(*inputs), list(module(*inputs)))


def test_value_that_is_kept_is_stored_by_the_pass_that_computes_it() -> None:
    graph = ExampleGraph()
    grown = graph.call(p.exp, graph.input(torch.randn(8, 40)))
    total = graph.call(p.broadcast_in_dim, graph.call(p.sum, grown, [1]), [8, 40], [0])
    (kernel,) = plan(graph.build(grown, graph.call(p.sub, grown, total))).kernels
    assert [type(s) for s in kernel.passes[0].points] == [Keep, Accumulate, Store]
