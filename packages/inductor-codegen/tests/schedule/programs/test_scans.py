"""Calls of running totals as kernels: to the bit what torch's give, and torch's own where they do as well."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from inductor_codegen.ir.program import CallExtern, Program, RunKernel
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper

aten: Any = torch.ops.aten
FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
WHOLE = (torch.int64, torch.int32, torch.uint8, torch.bool)


def numbers(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    made = torch.randn(sizes, generator=torch.Generator().manual_seed(sum(sizes)))
    if dtype.is_floating_point:
        return made.to(dtype)
    return made > 0 if dtype == torch.bool else (made * 100).abs().to(dtype)


def run(op: Any, x: torch.Tensor, dim: int) -> tuple[Program, torch.Tensor]:
    graph = ExampleGraph()
    program = plan(graph.build(graph.call(op, graph.input(x), dim)))
    (made,) = Stepper(program)(*graph.examples)
    return program, made


def is_kernel(program: Program) -> bool:
    (step,) = (step for step in program.steps if isinstance(step, RunKernel | CallExtern))
    return isinstance(step, RunKernel)


@pytest.mark.parametrize("op", [aten.cumsum.default, aten.cumprod.default])
@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_equals_torchs_bits(op: Any, dtype: torch.dtype, dim: int) -> None:
    x = numbers(5, 7, 530, dtype=dtype)
    program, made = run(op, x, dim)
    assert is_kernel(program) is (dim != -1 or dtype in FLOATS)
    assert torch.equal(made, op(x, dim))


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize(
    "x",
    [
        numbers(5, 30, 1100).transpose(0, 2),
        numbers(5, 30, 64)[:, ::2, ::3],
        numbers(7, 1, 9).expand(7, 11, 9),
        numbers(3, 70, 150).to(torch.bfloat16),
        numbers(70, 3, 150).to(torch.float16).transpose(0, 1),
        numbers(1, 40, 33),
    ],
)
def test_layouts(x: torch.Tensor, dim: int) -> None:
    program, made = run(aten.cumsum.default, x, dim)
    expected = x.cumsum(dim)
    assert torch.equal(made, expected)
    assert made.stride() == expected.stride()


def test_few_or_short_rows_and_other_dtypes_are_torchs_own() -> None:
    assert not is_kernel(run(aten.cumsum.default, numbers(900), 0)[0])
    assert not is_kernel(run(aten.cumsum.default, numbers(2, 900), 1)[0])
    assert not is_kernel(run(aten.cumsum.default, numbers(900, 20), 1)[0])
    assert not is_kernel(run(aten.cumsum.default, numbers(20, 900).to(torch.complex64), 1)[0])
    graph = ExampleGraph()
    narrowed = graph.call(aten.cumsum.default, graph.input(numbers(20, 900)), 1, dtype=torch.bfloat16)
    assert not is_kernel(plan(graph.build(narrowed)))


def test_not_a_number_and_infinities_go_on() -> None:
    x = numbers(12, 600)
    x[2, 3], x[4, 5], x[4, 8] = float("nan"), float("inf"), float("-inf")
    for dim in (0, 1):
        assert torch.equal(run(aten.cumsum.default, x, dim)[1].isnan(), x.cumsum(dim).isnan())


def test_sizes_that_vary() -> None:
    for dtype in (torch.float32, torch.bfloat16):
        x = numbers(11, 13, dtype=dtype)
        for dim in (0, 1):
            graph = ExampleGraph()
            count, width = graph.symbol(), graph.symbol()
            program = plan(graph.build(graph.call(aten.cumsum.default, graph.input(x), dim)))
            (made,) = Stepper(program)(*graph.examples)
            assert torch.equal(made, x.cumsum(dim))
            assert is_kernel(program)
            assert count != width
