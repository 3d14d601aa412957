"""Kernels of a GPU read tensors without dimensions, and indices, that lie on the CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import Node

from fx_interface.dialects import prims as p
from inductor_codegen.ir.program import CallExtern, Program, RunKernel
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import GpuGraph, Stepper, on_device

aten = torch.ops.aten
CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


def equals_itself(graph: GpuGraph, *outputs: Node) -> Program:
    """The program, whose kernels read what is on one device, and which gives what the operators give."""
    program = plan(graph.build(*outputs))
    buffers = program.buffers()
    for step in program.steps:
        if isinstance(step, RunKernel):
            assert len({buffers[name].device for name in step.buffers}) == 1
    results = Stepper(on_device(program, CPU))(*graph.examples)
    for node, result in zip(outputs, results, strict=True):
        torch.testing.assert_close(result, graph.values[node], equal_nan=True)
    return program


def everywhere(graph: GpuGraph, number: Node, *sizes: int) -> Node:
    return graph.call(p.broadcast_in_dim, number, list(sizes), [])


def operators(program: Program) -> list[Any]:
    return [step.op for step in program.steps if isinstance(step, CallExtern)]


def test_numbers_that_are_computed() -> None:
    """As DeBERTa's scale: nothing is left on the CPU, and nothing is copied."""
    graph = GpuGraph()
    x = graph.input(torch.randn(5, 7))
    width = graph.here(graph.call, p.full, [], 64.0, dtype=torch.float32, device=CPU)
    scale = graph.here(graph.call, p.sqrt, graph.here(graph.call, p.mul, width, 3.0))
    program = equals_itself(graph, graph.call(p.div, x, everywhere(graph, scale, 5, 7)))
    assert not operators(program)
    assert not program.kernels_on(CPU)


def test_numbers_that_are_computed_and_kept() -> None:
    """A result on the CPU is computed there, and where it is read."""
    graph = GpuGraph()
    x = graph.input(torch.randn(5, 7))
    scale = graph.here(
        graph.call, p.sqrt, graph.here(graph.call, p.full, [], 64.0, dtype=torch.float32, device=CPU)
    )
    program = equals_itself(graph, graph.call(p.div, x, everywhere(graph, scale, 5, 7)), scale)
    assert not operators(program)
    assert len(program.kernels_on(CPU)) == 1


def test_long_ways_from_a_number() -> None:
    """Each step reads the one before it twice."""
    graph = GpuGraph()
    x = graph.input(torch.randn(5, 7))
    scale = graph.here(graph.call, p.full, [], 1.0, dtype=torch.float32, device=CPU)
    for _ in range(400):
        scale = graph.here(graph.call, p.mul, scale, scale)
    program = plan(graph.build(graph.call(p.mul, x, everywhere(graph, scale, 5, 7))))
    assert not operators(program)
    assert not program.kernels_on(CPU)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_numbers_that_are_given(dtype: torch.dtype) -> None:
    """Kernels are given them; one kernel serves all that compute the same with others. What is computed from them is
    computed again where it is read, and what is written to them later is not seen."""
    graph = GpuGraph()
    given = [graph.here(graph.input, torch.tensor(1.5 + i, dtype=dtype), f"given{i}") for i in range(3)]
    results = []
    for number in given:
        x = graph.input(torch.randn(5, 7, dtype=dtype))
        results.append(graph.call(p.mul, x, everywhere(graph, graph.here(graph.call, p.exp, number), 5, 7)))
    program = equals_itself(graph, *results, graph.here(graph.call, p.add, given[0], 1.0))
    assert not operators(program)
    assert len(program.kernels_on(GPU)) == 1
    assert len({step.floats for step in program.steps if isinstance(step, RunKernel)}) == 4
    assert [name for _, name in program.numbers] == ["given0", "given1", "given2"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int64, torch.bool], ids=str)
def test_numbers_of_other_kinds_that_are_given(dtype: torch.dtype) -> None:
    """One launch brings the number, however many kernels read it."""
    graph = GpuGraph()
    x = graph.input(torch.tensor([[1, 0, 3]]).to(dtype))
    given = graph.here(graph.input, torch.tensor(2**62 + 1).to(dtype), "given")
    both = graph.call(p.eq, x, everywhere(graph, given, 1, 3))
    other = graph.call(p.ne, everywhere(graph, given, 4, 3), everywhere(graph, given, 4, 3))
    program = equals_itself(graph, both, other, graph.call(p.broadcast_in_dim, given, [2], []))
    assert operators(program) == [aten.fill.Tensor]
    assert not program.kernels_on(CPU)


def test_numbers_that_are_computed_from_given_ones() -> None:
    """They are computed on the CPU, as eager does."""
    graph = GpuGraph()
    x = graph.input(torch.randint(5, (5, 7)))
    given = graph.here(graph.input, torch.tensor(3), "given")
    scale = graph.here(graph.call, p.mul, given, given)
    program = equals_itself(graph, graph.call(p.mul, x, everywhere(graph, scale, 5, 7)))
    assert operators(program) == [aten.fill.Tensor]
    assert len(program.kernels_on(CPU)) == 1


def test_indices() -> None:
    graph = GpuGraph()
    x = graph.input(torch.randn(5, 7))
    place = graph.here(graph.input, torch.tensor([[4, 0], [1, 1]]), "place")
    program = equals_itself(graph, graph.call(p.index, x, [place, None]))
    assert operators(program) == [aten._to_copy.default]


def test_indices_that_are_counted() -> None:
    graph = GpuGraph()
    x = graph.input(torch.randn(5, 7))
    counted = graph.here(graph.call, p.iota, 3, start=1, step=1, dtype=torch.int64, device=CPU)
    program = equals_itself(graph, graph.call(p.index, x, [counted, None]))
    assert not operators(program)


def test_what_the_cpu_computes_with_is_copied() -> None:
    """As in ``there.copy_(x)``."""
    graph = GpuGraph()
    x = graph.input(torch.randn(5, 7))
    doubled = graph.call(p.mul, x, 2.0)
    here = graph.here(graph.call, p.clone, doubled)
    program = equals_itself(graph, here, graph.here(graph.call, p.neg, doubled))
    assert operators(program) == [aten._to_copy.default]
    assert program.kernels_on(CPU)


def moved(graph: GpuGraph, number: Node, **options: Any) -> Node:
    """By a call that a GPU would answer from the GPU."""
    return graph.call(aten._to_copy.default, number, device=CPU, **options)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64], ids=str)
def test_numbers_that_the_program_moves(dtype: torch.dtype) -> None:
    """Decompositions move operands so. Two moves give two tensors."""
    graph = GpuGraph()
    x = graph.input(torch.randn(5, 7).to(dtype))
    width = graph.here(graph.call, p.full, [], 64, dtype=dtype, device=CPU)
    there = moved(graph, width)
    other = moved(graph, width)
    program = equals_itself(graph, graph.call(p.mul, x, everywhere(graph, there, 5, 7)), there, other)
    assert not operators(program)
    assert not program.kernels_on(CPU)
    results = Stepper(on_device(program, CPU))(*graph.examples)
    assert results[1].data_ptr() != results[2].data_ptr()


def test_numbers_that_are_moved_and_converted() -> None:
    """As by ``.to(x)``."""
    graph = GpuGraph()
    width = graph.here(graph.call, p.full, [], 2.75, dtype=torch.float32, device=CPU)
    there = moved(graph, width, dtype=torch.int64, layout=torch.strided, non_blocking=True)
    assert not operators(equals_itself(graph, graph.call(p.neg, there)))


def test_moves_of_tensors_with_dimensions() -> None:
    graph = GpuGraph()
    there = moved(graph, graph.here(graph.input, torch.randn(3), "given"))
    assert operators(equals_itself(graph, graph.call(p.neg, there))) == [aten._to_copy.default]
