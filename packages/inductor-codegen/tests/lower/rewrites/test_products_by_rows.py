"""Padded products that a graph gives away are computed and copied in blocks of rows."""

from __future__ import annotations

import pytest
import torch

from fx_interface.dialects import prims as p
from fx_interface.tensor_spec import TensorSpec
from inductor_codegen.ir.program import Allocate, CallExtern, Free, Program, RunKernel
from inductor_codegen.lower.rewrites.products_by_rows import blocks_of_rows
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import GpuGraph, Stepper, on_device

aten = torch.ops.aten
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every product that may be padded is, and small results are worth blocks."""
    monkeypatch.setattr("inductor_codegen.lower.products._GAIN", 0.0)
    monkeypatch.setattr("inductor_codegen.lower.rewrites.products_by_rows._WORTH", 1)
    monkeypatch.setattr("inductor_codegen.lower.rewrites.products_by_rows._ROWS", 16)


def products(program: Program) -> list[tuple[object, ...]]:
    """The sizes of what products give."""
    return [
        result.sizes
        for step in program.steps
        if isinstance(step, CallExtern) and step.op in (aten.mm.default, aten.addmm.default)
        for result in step.results
        if result is not None
    ]


def program_of(graph: GpuGraph, *outputs: object) -> Program:
    """The program, which gives what the operators give, with their strides."""
    program = plan(graph.build(*outputs))
    results = Stepper(on_device(program, CPU))(*graph.examples)
    for node, result in zip(outputs, results, strict=True):
        expected = graph.values[node]  # type: ignore[index]
        torch.testing.assert_close(result, expected)
        assert result.stride() == expected.stride()
    return program


def factors(graph: GpuGraph, rows: int = 72) -> tuple[object, object]:
    x = graph.input(torch.randn(rows, 24, dtype=torch.bfloat16))
    w = graph.input(torch.randn(61, 24, dtype=torch.bfloat16), "w")
    return x, graph.call(p.permute, w, [1, 0])


def test_a_block_is_copied_before_the_next_is_computed() -> None:
    graph = GpuGraph()
    x, turned = factors(graph)
    scores = graph.call(aten.mm.default, x, turned)
    program = program_of(graph, graph.call(p.reshape, scores, [2, 36, 61]))
    assert products(program) == [(24, 64), (24, 64), (24, 64)]
    copies = [place for place, step in enumerate(program.steps) if isinstance(step, RunKernel)][-3:]
    calls = [place for place, step in enumerate(program.steps) if isinstance(step, CallExtern)]
    assert calls[0] < copies[0] < calls[1] < copies[1] < calls[2] < copies[2]
    freed = [
        place for place, step in enumerate(program.steps) if isinstance(step, Free) and "rows" in step.name
    ]
    assert copies[0] < freed[0] < calls[1]
    made = [step.buffer.sizes for step in program.steps if isinstance(step, Allocate)]
    assert (72, 61) in made
    assert not any(72 in sizes and 64 in sizes for sizes in made)


def test_a_bias_of_columns_is_added_in_each_block() -> None:
    graph = GpuGraph()
    x, turned = factors(graph, 70)
    bias = graph.input(torch.randn(61, dtype=torch.bfloat16), "b")
    assert products(program_of(graph, graph.call(aten.addmm.default, bias, x, turned))) == [
        (24, 64),
        (24, 64),
        (22, 64),
    ]


def test_what_a_kernel_reads_too_is_computed_whole() -> None:
    graph = GpuGraph()
    x, turned = factors(graph)
    scores = graph.call(aten.mm.default, x, turned)
    program = program_of(graph, scores, graph.call(p.amax, scores, [1]))
    assert products(program) == [(72, 64)]


def test_what_is_added_to_rows_is_computed_whole() -> None:
    graph = GpuGraph()
    x, turned = factors(graph)
    added = graph.input(torch.randn(72, 61, dtype=torch.bfloat16), "a")
    assert products(program_of(graph, graph.call(aten.addmm.default, added, x, turned))) == [(72, 64)]


def test_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()

    def of(rows: int, columns: int) -> list[tuple[int, int]]:
        return blocks_of_rows(TensorSpec((rows, columns), (columns, 1), torch.bfloat16, CPU))

    assert of(4096, 50257) == [(start, 512) for start in range(0, 4096, 512)]
    assert of(1000, 50257) == [(0, 336), (336, 336), (672, 328)]
    assert of(256, 50257) == []  # one block
    assert of(2048, 1001) == []  # 4 MB
