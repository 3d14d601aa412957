"""Fusion: what becomes one kernel, what is stored, and that groups can be ordered."""

from __future__ import annotations

import random

import pytest
import torch
from torch.fx import Node

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.cpp.emit import emit_kernel
from inductor_codegen.ir.kernel import Vector
from inductor_codegen.ir.program import CallExtern, Program
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper

aten = torch.ops.aten


def rows(graph: ExampleGraph, value: Node, sizes: list[int], dims: list[int]) -> Node:
    """A row's value repeated over the other dimensions."""
    return graph.call(p.broadcast_in_dim, value, sizes, dims)


def stored_sizes(program: Program) -> list[tuple[int, ...]]:
    buffers = program.buffers()
    inputs = {getattr(item, "name", "") for item in program.inputs}
    return sorted(tuple(b.sizes) for name, b in buffers.items() if name not in inputs)  # type: ignore[arg-type, misc]


def run(graph: ExampleGraph, *outputs: Node) -> Program:
    module = graph.build(*outputs)
    program = plan(module)
    for got, want in zip(
        Stepper(program, interpreted=True)(*graph.examples), module(*graph.examples), strict=True
    ):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    return program


def test_softmax_is_one_kernel_that_keeps_exp() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(8, 40))
    grown = graph.call(p.exp, graph.call(p.sub, x, rows(graph, graph.call(p.amax, x, [1]), [8, 40], [0])))
    program = run(graph, graph.call(p.div, grown, rows(graph, graph.call(p.sum, grown, [1]), [8, 40], [0])))
    (kernel,) = program.kernels
    assert len(kernel.passes) == 3
    assert stored_sizes(program) == [(8, 40)]


def test_batch_norm_statistics_and_result_are_one_kernel() -> None:
    graph = ExampleGraph()
    sizes = [4, 6, 5, 5]
    x = graph.input(torch.randn(sizes))
    mean = graph.call(p.div, graph.call(p.sum, x, [0, 2, 3]), 100.0)
    centred = graph.call(p.sub, x, rows(graph, mean, sizes, [1]))
    variance = graph.call(p.div, graph.call(p.sum, graph.call(p.mul, centred, centred), [0, 2, 3]), 100.0)
    scale = graph.call(p.rsqrt, graph.call(p.add, variance, 1e-5))
    program = run(graph, graph.call(p.mul, centred, rows(graph, scale, sizes, [1])), mean)
    (kernel,) = program.kernels
    assert [loop.extent for loop in kernel.outer] == [6]
    assert [loop.extent for loop in kernel.inner] == [4, 25]
    assert kernel.vector is Vector.INNER


def test_sum_over_the_batch_runs_along_memory() -> None:
    graph = ExampleGraph()
    x, y = graph.input(torch.randn(30, 50)), graph.input(torch.randn(30, 50), "y")
    grad = graph.call(p.mul, x, y)
    program = run(graph, grad, graph.call(p.sum, grad, [0]))
    (kernel,) = program.kernels
    assert kernel.vector is Vector.OUTER


def test_value_used_by_two_groups_is_stored_once() -> None:
    graph = ExampleGraph()
    x, w = graph.input(torch.randn(8, 8)), graph.input(torch.randn(8, 8), "w")
    h = graph.call(p.exp, graph.call(p.add, x, w))
    product = graph.call(aten.mm.default, graph.call(p.mul, h, h), w)
    program = run(graph, graph.call(p.add, product, h))
    assert len(program.kernels) == 2
    exps = sum("exp" in "".join(kernel.comments) for kernel in program.kernels)
    assert exps == 1


def test_cheap_value_is_computed_again() -> None:
    graph = ExampleGraph()
    x, w = graph.input(torch.randn(8, 8)), graph.input(torch.randn(8, 8), "w")
    h = graph.call(p.mul, x, 2.0)
    product = graph.call(aten.mm.default, graph.call(p.exp, h), w)
    program = run(graph, graph.call(p.add, product, graph.call(p.sin, h)))
    assert sum("mul: mul" in kernel.comments for kernel in program.kernels) == 2


def test_expensive_value_is_not_computed_once_for_each_repeat() -> None:
    graph = ExampleGraph()
    x, y = graph.input(torch.randn(40)), graph.input(torch.randn(30, 40), "y")
    grown = graph.call(p.exp, x)
    program = run(graph, graph.call(p.add, y, rows(graph, grown, [30, 40], [1])))
    assert len(program.kernels) == 2


def test_no_circle_between_groups() -> None:
    graph = ExampleGraph()
    x, w = graph.input(torch.randn(8, 8)), graph.input(torch.randn(8, 8), "w")
    h = graph.call(p.exp, x)
    product = graph.call(aten.mm.default, graph.call(p.sin, h), w)
    again = graph.call(aten.mm.default, graph.call(p.mul, product, h), w)
    run(graph, graph.call(p.add, graph.call(p.add, again, h), product))


def test_reshaped_rows_share_a_kernel() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(4, 5, 16))
    flat = graph.call(p.reshape, graph.call(p.exp, x), [20, 16])
    total = graph.call(p.reshape, graph.call(p.sum, flat, [1]), [4, 5])
    program = run(graph, graph.call(p.div, graph.call(p.exp, x), rows(graph, total, [4, 5, 16], [0, 1])))
    assert len(program.kernels) == 1


def test_equal_layers_share_one_kernel() -> None:
    graph = ExampleGraph()
    x, w = graph.input(torch.randn(8, 8)), graph.input(torch.randn(8, 8), "w")
    for _ in range(5):
        x = graph.call(p.tanh, graph.call(p.add, graph.call(aten.mm.default, x, w), 1.0))
    program = run(graph, x)
    assert len(program.kernels) == 1


def test_epilogue_of_a_whole_sum_is_fused() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(30, 50))
    program = run(graph, graph.call(p.div, graph.call(p.sum, graph.call(p.mul, x, x), [0, 1]), 1500.0))
    assert len(program.kernels) == 1


def _turned_and_reshaped(sizes: list[int]) -> Program:
    graph = ExampleGraph()
    x, y, rows = (
        graph.input(torch.randn(sizes)),
        graph.input(torch.randn(30, 49)),
        graph.input(torch.randn(49, 30)),
    )
    turned = graph.call(p.add, rows, graph.call(p.neg, graph.call(p.permute, y, [1, 0])))
    return run(graph, graph.call(p.add, x, graph.call(p.reshape, turned, sizes)))


def test_what_is_found_by_division_alone_is_stored() -> None:
    """Of ``(rows - y.t()).reshape(30, 49)`` every point would divide to find its row and column of y."""
    program = _turned_and_reshaped([30, 49])
    assert len(program.kernels) == 2
    assert "%" not in "".join(map(emit_kernel, program.kernels))


def test_dimensions_that_are_cut_need_no_division() -> None:
    assert len(_turned_and_reshaped([7, 7, 30]).kernels) == 1


def test_one_number_at_every_point_is_not_stored() -> None:
    """``grad / n`` of a mean was stored for every element, because two kernels divided."""
    graph = ExampleGraph()
    grad, x = graph.input(torch.tensor(2.0)), graph.input(torch.randn(40, 50))
    share = graph.call(p.div, rows(graph, grad, [40, 50], []), 2000.0)
    total = graph.call(p.sum, graph.call(p.exp, graph.call(p.mul, x, share)), [0])
    program = run(graph, graph.call(p.mul, x, share), total)
    assert stored_sizes(program) == [(40, 50), (50,)]


def test_what_few_places_are_looked_up_of_is_computed_there() -> None:
    """One element a row of a softmax's logarithm: nothing of the size of the rows is stored."""
    graph = ExampleGraph()
    x, labels = graph.input(torch.randn(8, 64)), graph.input(torch.randint(0, 64, (8, 1)), "labels")
    moved = graph.call(p.sub, x, rows(graph, graph.call(p.amax, x, [1]), [8, 64], [0]))
    total = graph.call(p.log, graph.call(p.sum, graph.call(p.exp, moved), [1]))
    result = graph.call(p.sub, moved, rows(graph, total, [8, 64], [0]))
    program = run(graph, graph.call(p.gather, result, 1, labels))
    assert set(stored_sizes(program)) == {(8,), (8, 1)}


def test_what_is_looked_up_often_or_needed_anyway_is_stored() -> None:
    for count, kept in ((16, False), (1, True)):
        graph = ExampleGraph()
        x, labels = graph.input(torch.randn(8, 64)), graph.input(torch.randint(0, 64, (8, count)), "labels")
        grown = graph.call(p.exp, graph.call(p.exp, x))
        program = run(graph, graph.call(p.gather, grown, 1, labels), *([grown] if kept else []))
        assert stored_sizes(program) == [(8, count), (8, 64)]


@pytest.mark.parametrize("seed", range(20))
def test_numbers_are_drawn_in_the_order_of_the_program(seed: int) -> None:
    """A kernel that waits for later values made a draw run after another one, whose input was there before."""
    chosen = random.Random(seed)
    graph = ExampleGraph()
    known = [graph.input(torch.rand(8)), graph.input(torch.rand(8), "other")]
    shares = [(1 + index) / 16 for index in range(5)]
    for share in shares:
        for _ in range(chosen.randrange(3)):
            known.append(graph.call(chosen.choice((p.sin, p.cos)), chosen.choice(known)))
        known.append(graph.call(aten.bernoulli.p, chosen.choice(known), share))
        known.append(graph.call(p.mul, known[-1], chosen.choice(known)))
    outputs = chosen.sample(known[2:], 3)
    steps = plan(graph.build(*outputs, *(value for value in known if value.target is aten.bernoulli.p))).steps
    assert [step.args[1] for step in steps if isinstance(step, CallExtern)] == shares
