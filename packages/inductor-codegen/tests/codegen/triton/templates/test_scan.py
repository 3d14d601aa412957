"""Running totals as kernels of a GPU, in Triton's interpreter, beside torch's of float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from inductor_codegen.ir.gpu import scan
from inductor_codegen.ir.gpu.scan import GpuScanKernel
from inductor_codegen.ir.program import CallExtern, Program
from inductor_codegen.ir.verify import verify_kernel
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, on_device, on_gpu_alike

aten: Any = torch.ops.aten
Interpret = Callable[..., Callable[..., Any]]
CPU = torch.device("cpu")
WHOLE = (torch.int64, torch.int32, torch.uint8, torch.bool)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of some hundred points have several blocks."""
    monkeypatch.setattr(scan, "POINTS", 64)
    monkeypatch.setattr(scan, "_ELEMENTS", 128)
    monkeypatch.setattr("inductor_codegen.schedule.programs.gpu_scans._LEAST_ELEMENTS", 1)


def numbers(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    made = torch.randn(sizes, generator=torch.Generator().manual_seed(sum(sizes)))
    if dtype.is_floating_point:
        return made.to(dtype)
    return made > 0 if dtype == torch.bool else (made * 9).abs().to(dtype)


def planned(op: Any, x: torch.Tensor, dim: int) -> Program:
    graph = ExampleGraph()
    return plan(on_gpu_alike(graph.build(graph.call(op, graph.input(x), dim))))


def check(op: Any, x: torch.Tensor, dim: int, interpret: Interpret) -> None:
    program = planned(op, x, dim)
    assert [type(kernel) for kernel in program.kernels] == [GpuScanKernel]
    verify_kernel(program.kernels[0])
    (made,) = interpret(on_device(program, CPU))(x)
    expected = op(x, dim)
    assert (made.dtype, made.stride()) == (expected.dtype, expected.stride())
    if not x.dtype.is_floating_point:
        assert torch.equal(made, expected)
        return
    exact = op(x.double(), dim)
    allowed = 2 * (expected.double() - exact).abs().max() + torch.finfo(x.dtype).eps * exact.abs().max()
    assert (made.double() - exact).abs().max() <= allowed


@pytest.mark.parametrize("op", [aten.cumsum.default, aten.cumprod.default])
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("sizes", [(5, 3, 64), (3, 1, 200), (70, 2, 37), (2, 130, 1)])
def test_totals_are_as_near_as_torchs(
    op: Any, dim: int, sizes: tuple[int, ...], interpret: Interpret
) -> None:
    check(op, numbers(*sizes), dim, interpret)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, *WHOLE])
@pytest.mark.parametrize("dim", [0, 1])
def test_each_dtype(dtype: torch.dtype, dim: int, interpret: Interpret) -> None:
    check(aten.cumsum.default, numbers(40, 150, dtype=dtype), dim, interpret)


@pytest.mark.parametrize("turn", [lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[1].expand(6, -1)])
@pytest.mark.parametrize("dim", [0, 1])
def test_other_layouts_are_kernels_where_points_or_rows_are_neighbours(
    turn: Callable[[torch.Tensor], torch.Tensor], dim: int, interpret: Interpret
) -> None:
    x = turn(numbers(40, 150))
    program = planned(aten.cumsum.default, x, dim)
    if not program.kernels:
        assert any(isinstance(step, CallExtern) for step in program.steps)
        return
    (made,) = interpret(on_device(program, CPU))(x)
    torch.testing.assert_close(made, x.cumsum(dim))


def test_infinities_and_nans_stay_behind_where_they_stand(interpret: Interpret) -> None:
    x = numbers(2, 200)
    x[0, 70], x[1, 3], x[1, 150] = float("nan"), float("inf"), float("-inf")
    (made,) = interpret(on_device(planned(aten.cumsum.default, x, 1), CPU))(x)
    torch.testing.assert_close(made, x.cumsum(1), equal_nan=True)


def test_few_long_rows_and_sizes_that_vary_are_the_librarys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inductor_codegen.schedule.programs.gpu_scans._LONGEST_FOR_FEW", 100)
    assert not planned(aten.cumsum.default, numbers(3, 101), 1).kernels
    assert planned(aten.cumsum.default, numbers(3, 100), 1).kernels
    assert planned(aten.cumsum.default, numbers(300, 101), 1).kernels
    graph = ExampleGraph()
    rows = graph.symbol()
    given = graph.input(numbers(graph.builder.env.hint(rows), 64))
    assert given is not None
    assert not plan(on_gpu_alike(graph.build(graph.call(aten.cumsum.default, given, 1)))).kernels
