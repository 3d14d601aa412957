"""Calls that add by index on a GPU as kernels with atomic additions, and where torch's own calls stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from inductor_codegen.ir.program import CallExtern, Program, RunKernel
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import GpuGraph, Stepper, on_device

Interpret = Callable[..., Callable[..., Any]]
aten: Any = torch.ops.aten
CPU = torch.device("cpu")


def rows(count: int, *sizes: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.randint(0, count, sizes, generator=torch.Generator().manual_seed(count)).to(dtype)


def numbers(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(sizes, generator=torch.Generator().manual_seed(sum(sizes))).to(dtype)


def program_of(op: Any, *args: Any) -> tuple[Program, GpuGraph]:
    graph = GpuGraph()

    def given(argument: Any) -> Any:
        if isinstance(argument, torch.Tensor):
            return graph.input(argument, f"x{len(graph.examples)}")
        return [given(item) for item in argument] if isinstance(argument, list) else argument

    return plan(graph.build(graph.call(op, *map(given, args)))), graph


def kernels(program: Program) -> list[str]:
    """What runs, without digests."""
    found = [step for step in program.steps if isinstance(step, RunKernel | CallExtern)]
    return [s.kernel.rpartition("_")[0] if isinstance(s, RunKernel) else s.op.__name__ for s in found]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    ("op", "args"),
    [
        (aten.index_put.default, (numbers(5, 16), [rows(5, 20) - 5], numbers(20, 16), True)),
        (aten.index_put.default, (numbers(3, 5, 2, 9), [None, rows(5, 4, 5)], numbers(9), True)),
        (aten.index_put.default, (numbers(9), [rows(9, 200, dtype=torch.int32)], numbers(200), True)),
        (aten.index_add.default, (numbers(16, 5).t(), 0, rows(5, 20), numbers(16, 20).t())),
        (aten.scatter_add.default, (numbers(40, 4, 3), 1, rows(4, 40, 9, 3), numbers(40, 9, 3))),
        (aten.embedding_dense_backward.default, (numbers(4, 6, 16), rows(9, 4, 6), 9, 3, False)),
    ],
)
def test_the_same_sums(op: Any, args: tuple[Any, ...], dtype: torch.dtype, interpret: Interpret) -> None:
    args = tuple(a.to(dtype) if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args)
    program, graph = program_of(op, *args)
    assert "scatter" in kernels(program)
    assert not any(isinstance(step, CallExtern) for step in program.steps)
    here = on_device(program, CPU)
    expected = op(*args).double()
    tolerance = {"atol": 0.1, "rtol": 0.05} if dtype.itemsize == 2 else {}
    for run in (interpret(here), Stepper(here)):
        (result, *_) = run(*graph.examples)
        assert result.dtype == dtype
        torch.testing.assert_close(result.double(), expected, **tolerance)


def test_16_bit_floats_are_added_in_float32(interpret: Interpret) -> None:
    """256 + 1 + ... + 1 is 256 in bfloat16 when each sum is rounded."""
    base, ones = torch.full((2,), 256.0, dtype=torch.bfloat16), torch.ones(64, dtype=torch.bfloat16)
    program, graph = program_of(
        aten.index_put.default, base, [torch.zeros(64, dtype=torch.int64)], ones, True
    )
    assert kernels(program) == ["converted", "scatter", "converted"]
    assert interpret(on_device(program, CPU))(*graph.examples)[0].tolist() == [320.0, 256.0]


@pytest.mark.parametrize(
    ("op", "args"),
    [
        (aten.index_put.default, (numbers(50, 16), [rows(5, 20)], numbers(20, 16), True)),  # a large target
        (aten.index_put.default, (numbers(2), [rows(2, 200)], numbers(200), True)),  # many terms of each sum
        (aten.index_put.default, (numbers(5, 16), [rows(5, 20)], numbers(20, 16), False)),
    ],
)
def test_what_stays_a_call(op: Any, args: tuple[Any, ...]) -> None:
    program, _ = program_of(op, *args)
    assert kernels(program) == [op.__name__]


def test_where_deterministic_kernels_are_asked_for() -> None:
    torch.use_deterministic_algorithms(True)
    try:
        program, _ = program_of(aten.index_put.default, numbers(5, 16), [rows(5, 20)], numbers(20, 16), True)
    finally:
        torch.use_deterministic_algorithms(False)
    assert kernels(program) == ["index_put.default"]
