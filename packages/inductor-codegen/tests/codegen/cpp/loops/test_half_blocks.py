"""float16 converted by the block: every pattern, every boundary of rounding, ends that fill no vector."""

from __future__ import annotations

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.cpp.emit import emit_kernel
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper

EVERY_HALF = torch.arange(-(2**15), 2**15, dtype=torch.int16).view(torch.float16)


def around(halves: torch.Tensor) -> torch.Tensor:
    """Floats at and next to each float16, and half way to the following one."""
    low = halves.float()
    high = (halves.view(torch.int16) + 1).view(torch.float16).float()
    middle = (low + high) / 2
    near = [torch.nextafter(middle, torch.tensor(limit)) for limit in (torch.inf, -torch.inf)]
    return torch.cat([low, middle, *near, torch.tensor([65519.996, 65520.0, 1e30, 1e-30, -0.0])])


def run(
    graph: ExampleGraph, *results: torch.fx.Node
) -> tuple[list[torch.Tensor], tuple[torch.Tensor, ...], str]:
    module = graph.build(*results)
    program = plan(module)
    text = "".join(map(emit_kernel, program.kernels))
    return Stepper(program)(*graph.examples), module(*graph.examples), text


def test_widening_is_exact() -> None:
    graph = ExampleGraph()
    (found,), (wanted,), text = run(
        graph, graph.call(p.convert_dtype, graph.input(EVERY_HALF), torch.float32)
    )
    assert "widen_halves" in text
    assert torch.equal(found.nan_to_num(7.0), wanted.nan_to_num(7.0))


def test_narrowing_and_rounding_are_to_nearest_even() -> None:
    graph = ExampleGraph()
    x = graph.input(around(EVERY_HALF))
    half = graph.call(p.convert_dtype, x, torch.float16)
    doubled = graph.call(p.mul, graph.call(p.convert_dtype, half, torch.float32), 2.0)
    found, wanted, text = run(graph, half, doubled)
    assert "narrow_halves" in text
    assert "half_rounded" in text
    for got, want in zip(found, wanted, strict=True):
        assert torch.equal(got.isnan(), want.isnan())
        bits = torch.int16 if got.dtype == torch.float16 else torch.int32
        assert torch.equal(got[~got.isnan()].view(bits), want[~want.isnan()].view(bits))


@pytest.mark.parametrize("length", [1, 31, 33, 511, 512, 513, 1030])
@pytest.mark.parametrize("rows", [1, 3])
def test_ends_that_fill_no_vector(length: int, rows: int) -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(rows, length).half())
    tripled = graph.call(p.mul, graph.call(p.convert_dtype, x, torch.float32), 3.0)
    total = graph.call(p.sum, tripled, [1])
    found, wanted, _ = run(graph, graph.call(p.convert_dtype, tripled, torch.float16), total)
    assert torch.equal(found[0], wanted[0])
    torch.testing.assert_close(found[1], wanted[1], rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("length", [33, 512, 700, 2048, 2049])
def test_a_row_that_several_passes_read_is_converted_once(length: int) -> None:
    graph = ExampleGraph()
    x = graph.call(p.convert_dtype, graph.input(torch.randn(3, length).half()), torch.float32)
    mean = graph.call(p.mul, graph.call(p.sum, x, [1]), 1 / length)
    wide = graph.call(p.broadcast_in_dim, mean, [3, length], [0])
    apart = graph.call(p.sub, x, wide)
    squares = graph.call(p.sum, graph.call(p.mul, apart, apart), [1])
    (found,), (wanted,), text = run(graph, squares)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-4)
    assert (text.count("widen_halves(") == 1) == (length <= 2048)


def test_indices_that_do_not_run_along_the_loop_are_read_one_by_one() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(50, 60).half())
    swapped = graph.call(p.permute, x, [1, 0])
    found, wanted, _ = run(graph, graph.call(p.add, graph.call(p.convert_dtype, swapped, torch.float32), 1.0))
    assert torch.equal(found[0], wanted[0])


@pytest.mark.parametrize("shape", [(1000, 1000), (37, 40), (5, 33), (260, 2049), (1, 64), (9, 15)], ids=str)
@pytest.mark.parametrize("squared", [False, True])
def test_sums_of_columns(shape: tuple[int, int], squared: bool) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(shape[0])).half()
    x[0, -1] = 65504.0 if not squared else 1.0
    graph = ExampleGraph()
    wide = graph.call(p.convert_dtype, graph.input(x), torch.float32)
    module = graph.build(
        graph.call(p.sum, graph.call(p.mul, wide, wide) if squared else wide, [0]),
        graph.call(p.amax, wide, [0]),
    )
    made = plan(module)
    text = "".join(map(emit_kernel, made.kernels))
    assert ("widen_halves(" in text) == (shape[1] >= 32)
    for threads in (1, 3):
        total, largest = Stepper(made, threads=threads)(x)
        exact = x.double().square() if squared else x.double()
        torch.testing.assert_close(total, exact.sum(0).float())
        assert torch.equal(largest, x.float().amax(0))
