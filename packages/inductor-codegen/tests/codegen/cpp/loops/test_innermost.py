"""Sums in parts of several streams, and searches by the block: every kind of end, and what may stand in a block."""

from __future__ import annotations

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.cpp.emit import emit_kernel
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper

FLOATS = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


def run(graph: ExampleGraph, *results: torch.fx.Node) -> tuple[list[torch.Tensor], str]:
    program = plan(graph.build(*results))
    return Stepper(program)(*graph.examples), "".join(map(emit_kernel, program.kernels))


@pytest.mark.parametrize("dtype", FLOATS)
def test_sums_have_every_term_once(dtype: torch.dtype) -> None:
    graph, wanted, sums = ExampleGraph(), [], []
    for length in (511, 512, 513, 1000, 1023, 1024, 1025, 1537, 2048, 5000):
        numbers = torch.randint(-8, 9, (3, length), generator=torch.Generator().manual_seed(length))
        single = graph.call(p.convert_dtype, graph.input(numbers.to(dtype)), torch.float32)
        sums += [graph.call(p.sum, single, [1]), graph.call(p.sum, single, [0, 1])]
        wanted += [numbers.sum(1), numbers.sum()]
    for found, want in zip(run(graph, *sums)[0], wanted, strict=True):
        assert torch.equal(found.long(), want)


@pytest.mark.parametrize("dtype", FLOATS[1:])
@pytest.mark.parametrize("length", [1000, 5000])
def test_sums_of_one_row_of_16_bits_are_made_of_streams(dtype: torch.dtype, length: int) -> None:
    numbers = torch.randint(-8, 9, (3, length)).to(dtype)
    graph = ExampleGraph()
    single = graph.call(p.convert_dtype, graph.input(numbers), torch.float32)
    (rows,), text = run(graph, graph.call(p.sum, single, [1]))
    assert "turn" in text
    assert torch.equal(rows, numbers.float().sum(1))


def test_vectors_of_16_bits_at_the_end_of_a_row_are_as_long_as_those_before() -> None:
    graph = ExampleGraph()
    single = graph.call(p.convert_dtype, graph.input(torch.randn(3, 1000).bfloat16()), torch.float32)
    _, text = run(graph, graph.call(p.sum, single, [1]))
    loops = [line for line in text.splitlines() if "omp simd reduction(+:p0)" in line]
    assert len(loops) == 2
    assert all("simdlen(VECTOR_BYTES / 4)" in line for line in loops)


def test_many_terms_are_added_up_in_short_parts() -> None:
    """1000 terms: 3 parts of 4 streams of 64, whose lanes add up 8 terms or less, and 232 more."""
    graph = ExampleGraph()
    _, text = run(graph, graph.call(p.sum, graph.input(torch.randn(3, 1000)), [1]))
    assert "part < 768; part += 256" in text
    assert "turn < 64" in text


def test_equal_terms_are_not_rounded_to_one_side() -> None:
    """A lane that adds one number to itself over and over is off by more with every term."""
    x = torch.full((3, 3072), 0.124)
    graph = ExampleGraph()
    (found,), _ = run(graph, graph.call(p.sum, graph.input(x), [1]))
    exact = x.double().sum(1)
    assert float(((found.double() - exact) / exact).abs().max()) <= 4 * 2**-24


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.int32, torch.uint8])
def test_places_of_the_first_of_equals(dtype: torch.dtype) -> None:
    graph, wanted, places = ExampleGraph(), [], []
    for length in (1, 7, 255, 256, 257, 1000):
        x = torch.randint(0, 3, (40, length), generator=torch.Generator().manual_seed(length)).to(dtype)
        for prim, best in ((p.argmax, x.amax(1, True)), (p.argmin, x.amin(1, True))):
            first = torch.where(x == best, torch.arange(length), length).amin(1)
            places += [graph.call(prim, graph.input(x), 1), graph.call(prim, graph.input(x.flatten()), 0)]
            of_all = (best == (best.amax() if prim is p.argmax else best.amin())).int().argmax()
            wanted += [first, of_all * length + first[of_all]]
    for found, want in zip(run(graph, *places)[0], wanted, strict=True):
        assert torch.equal(found, want)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("nans", [[], [0], [255], [256, 300], [999], [3, 700]])
def test_the_first_nan_is_the_place(dtype: torch.dtype, nans: list[int]) -> None:
    x = torch.randn(4, 1000).to(dtype)
    x[1] = -torch.inf
    x[2, 500:] = torch.inf
    for at in nans:
        x[:, at] = torch.nan
    graph = ExampleGraph()
    given = graph.input(x)
    (most, least), _ = run(graph, graph.call(p.argmax, given, 1), graph.call(p.argmin, given, 1))
    assert torch.equal(most, x.argmax(1))
    assert torch.equal(least, x.argmin(1))


def test_a_place_beside_its_number_and_a_sum() -> None:
    """Of what is computed: the number of a block is kept, not computed again."""
    x = torch.randn(5, 1000)
    graph = ExampleGraph()
    computed = graph.call(p.exp, graph.call(p.mul, graph.input(x), 0.5))
    found, text = run(
        graph,
        graph.call(p.argmax, computed, 1),
        graph.call(p.amax, computed, [1]),
        graph.call(p.argmin, computed, 1),
    )
    assert text.count("single_exp") <= 1
    assert torch.equal(found[0], x.argmax(1))
    torch.testing.assert_close(found[1], (x * 0.5).exp().amax(1))
    assert torch.equal(found[2], x.argmin(1))


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.uint8])
def test_places_in_columns(dtype: torch.dtype) -> None:
    """Side by side: the first of equals, the first NaN, and 0 where every number is the least there is."""
    x = torch.randint(0, 3, (50, 70), generator=torch.Generator().manual_seed(0)).to(dtype)
    x[:, 1] = -torch.inf if dtype.is_floating_point else torch.iinfo(dtype).min
    x[:, 2] = torch.inf if dtype.is_floating_point else torch.iinfo(dtype).max
    if dtype.is_floating_point:
        x[[7, 9], 3] = torch.nan
        x[:, 4] = torch.nan
    graph = ExampleGraph()
    given = graph.input(x)
    (most, least), text = run(graph, graph.call(p.argmax, given, 0), graph.call(p.argmin, given, 0))
    assert "lane" in text
    assert torch.equal(most, x.argmax(0))
    assert torch.equal(least, x.argmin(0))
