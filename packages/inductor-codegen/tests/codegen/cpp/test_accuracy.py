"""Sums of kernels are as near to float64 as pairwise summation is, in every way that a loop is written."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fx_interface.dialects import prims as p
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper

LENGTHS = (3, 31, 64, 96, 100, 511, 512, 515, 1000, 1024, 1027, 4096, 9001)
"""Rows without streams, with them, with a rest of each size, and of several parts."""


def sums(values: torch.Tensor) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Sums of many kinds of loops over the same values, and the exact sums of those values."""
    graph = ExampleGraph()
    row = graph.input(values, "row")
    many = graph.input(values.expand(4, -1).contiguous(), "many")
    column = graph.input(values[:, None].expand(-1, 37).contiguous(), "column")
    inner = graph.input(values.reshape(-1, 1, 1).expand(-1, 5, 3).contiguous(), "inner")
    order = graph.input(torch.arange(len(values)).flip(0), "order")
    named = graph.call(p.gather, row, 0, order)
    made = [
        graph.call(p.sum, row, [0]),
        graph.call(p.sum, many, [1]),
        graph.call(p.sum, column, [0]),
        graph.call(p.sum, graph.call(p.mul, column, 0.5), [0]),
        graph.call(p.sum, graph.call(p.tanh, many), [1]),
        graph.call(p.sum, inner, [0, 2]),
        graph.call(p.sum, named, [0]),
    ]
    found = Stepper(plan(graph.build(*made)), threads=2)(*graph.examples)
    exact = values.double().sum()
    wanted = [exact, exact, exact, exact / 2, values.double().tanh().sum(), exact * 3, exact]
    return found, wanted


@pytest.mark.parametrize("length", LENGTHS)
def test_equal_terms_do_not_add_up_their_rounding_errors(length: int) -> None:
    for got, want in zip(*sums(torch.full((length,), 0.1)), strict=True):
        torch.testing.assert_close(got.double(), want.expand_as(got), rtol=1e-6, atol=0)


@pytest.mark.parametrize("sizes", [(2, 1500), (1, 600), (700, 3), (70, 9), (3, 5, 64)], ids=str)
def test_equal_terms_of_columns_in_several_loops(sizes: tuple[int, ...]) -> None:
    """Loops that are not one: parts of a sum end inside of the innermost, whatever is around it."""
    whole = torch.full((*(2 * size for size in sizes), 21), 0.1)
    part = whole[tuple(slice(0, size) for size in sizes)]
    graph = ExampleGraph()
    x = graph.input(part, "x")
    dims = list(range(len(sizes)))
    pair = [graph.call(p.sum, x, dims), graph.call(p.sum, graph.call(p.mul, x, 0.5), dims)]
    found = Stepper(plan(graph.build(*pair)), threads=2)(*graph.examples)
    exact = part[..., 0].double().sum()
    for got, want in zip(found, (exact, exact / 2), strict=True):
        torch.testing.assert_close(got.double(), want.expand_as(got), rtol=6e-7, atol=0)


@settings(max_examples=3, deadline=None)
@given(length=st.integers(2, 12_000), seed=st.integers(0, 2**20), offset=st.sampled_from([0.0, 1.0, 1e3]))
def test_sums_of_any_length(length: int, seed: int, offset: float) -> None:
    random = torch.Generator().manual_seed(seed)
    values = torch.randn(length, generator=random) + offset
    scale = float(values.abs().double().sum())
    for got, want in zip(*sums(values), strict=True):
        assert float((got.double() - want).abs().max()) <= 4 * torch.finfo(torch.float32).eps * scale


@pytest.mark.parametrize("source", [torch.float32, torch.float64])
@pytest.mark.parametrize("integer", [torch.uint8, torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("length", [1, 100])
def test_floats_that_were_integers(source: torch.dtype, integer: torch.dtype, length: int) -> None:
    """Not rounded floats: -0.5 is 0.0, and what an integer cannot hold is what the processor makes of it."""
    values = torch.tensor([-0.5, -0.0, 1.5, torch.nan, torch.inf, -torch.inf], dtype=source)
    values = values.repeat_interleave(length)
    graph = ExampleGraph()
    held = graph.call(p.convert_dtype, graph.input(values, "values"), integer)
    (found,) = Stepper(plan(graph.build(graph.call(p.convert_dtype, held, source))), threads=1)(
        *graph.examples
    )
    expected = values.to(integer).to(source)
    assert torch.equal(found, expected)
    assert torch.equal(found.signbit(), expected.signbit())
