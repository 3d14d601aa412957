"""Rows that are reduced side by side: a group's number is laid out for the lanes of its channels, once."""

from __future__ import annotations

import re

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.cpp.emit import emit_kernel
from inductor_codegen.ir.kernel import Vector
from inductor_codegen.ir.program import Program
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper


def sums(
    images: int, groups: int, channels: int, points: int, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor, str]:
    """Sums over the points of channels-last memory, of the numbers less their group's; ours, torch's and the text."""
    generator = torch.Generator().manual_seed(points)
    memory = torch.randint(-8, 9, (images, points, groups * channels), generator=generator).to(dtype)
    x = memory.mT.unflatten(1, (groups, channels))
    least = torch.randint(-4, 5, (images, groups), generator=generator).to(dtype)
    graph = ExampleGraph()
    sizes = [images, groups, channels, points]
    spread = graph.call(p.broadcast_in_dim, graph.input(least, "least"), sizes, [0, 1])
    taken = graph.call(p.sub, graph.input(x), spread)
    program = plan(graph.build(graph.call(p.sum, graph.call(p.convert_dtype, taken, torch.float32), [3])))
    (kernel,) = program.kernels
    (found,) = Stepper(program)(*graph.examples)
    return found, (x - least[:, :, None, None]).float().sum(3), emit_kernel(kernel)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("channels", [1, 3, 4, 16])
@pytest.mark.parametrize("points", [3, 300])
def test_numbers_of_groups(channels: int, points: int, dtype: torch.dtype) -> None:
    found, wanted, _ = sums(2, 8, channels, points, dtype)
    assert torch.equal(found, wanted)


def test_short_groups_fill_vectors_and_their_numbers_are_laid_out() -> None:
    *_, text = sums(2, 8, 4, 300, torch.float32)
    assert "width = 32;" in text  # all channels are lanes
    (array,) = set(re.findall(r"(r\d+)\[lane\] = ", text))
    (loaded,) = re.findall(r"(t\d+) = in\d\[[^\]]*/ 4[^\]]*\]", text)
    assert f"{array}[lane] = {loaded};" in text


def test_long_groups_are_rows_of_their_own() -> None:
    *_, text = sums(2, 8, 16, 300, torch.float32)
    assert "out0[128 * i0 + 16 * i1 + i2]" in text  # channels alone are lanes
    assert not re.search(r"r\d+\[lane\]", text)


def normalized(
    sizes: list[int], *, apart: bool = False, stored: bool = True
) -> tuple[Program, list[torch.Tensor], list[torch.Tensor]]:
    """Images, channels last: all points less what each channel has, and that if it is to be ``stored``. ``apart``: a
    library call stands between the reduction and the rest."""
    generator = torch.Generator().manual_seed(sizes[1])
    x = torch.randint(-8, 9, sizes, generator=generator).float().to(memory_format=torch.channels_last)
    graph = ExampleGraph()
    image = graph.input(x)
    grown = graph.call(p.exp, graph.call(p.mul, image, 0.125))
    total = graph.call(p.sum, image if apart else grown, [0, 2, 3])
    other = graph.call(torch.ops.aten.flip.default, total, [0]) if apart else total
    scale = graph.call(p.tanh, graph.call(p.mul, total, other))
    results = [graph.call(p.sub, grown, graph.call(p.broadcast_in_dim, scale, sizes, [1]))]
    results += [scale] * stored
    program = plan(graph.build(*results))
    return program, Stepper(program)(*graph.examples), [graph.values[result] for result in results]


@pytest.mark.parametrize("channels", [3, 16, 40, 300, 1100])
@pytest.mark.parametrize("apart", [False, True])
def test_what_each_row_has_and_its_points(channels: int, apart: bool) -> None:
    """Blocks of rows side by side: whole ones, shares of them, a part at the end."""
    program, found, wanted = normalized([2, channels, 5, 5], apart=apart)
    for mine, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-5)
        assert mine.stride() == other.stride()
    assert [kernel.vector for kernel in program.kernels] == [Vector.OUTER] * (1 + apart)


def test_few_rows_are_pieces_of_a_line_of_memory() -> None:
    program, *_ = normalized([2, 48, 81, 9], stored=False)
    texts = list(map(emit_kernel, program.kernels))
    assert texts
    assert all("pieces = 3;" in text and "width = blocks * 16;" in text for text in texts)


@pytest.mark.parametrize(("channels", "at_once"), [(1000, 16), (1024, 16), (270, 9), (1100, 12), (200, 16)])
def test_one_thread_takes_all_pieces_that_fit_into_a_block(channels: int, at_once: int) -> None:
    """The last piece may be shorter: 1000 rows are one block of 16 pieces, of 64 lanes or 40."""
    program, *_ = normalized([1, channels, 41, 9], apart=True, stored=False)
    text = emit_kernel(program.kernels[0])
    (found,) = re.findall(r"blocks = size_min\(left, (\d+)\);", text)
    assert int(found) == at_once


def test_rows_of_one_piece_have_a_known_width() -> None:
    found, wanted, text = sums(2, 1, 16, 20000, torch.float32)
    assert torch.equal(found, wanted)
    assert "const int64_t blocks = 1, block = 0, width = 16;" in text
    assert "size_min(" not in text.partition("kernel_")[2]


@pytest.mark.parametrize(("height", "keeps"), [(16, True), (200, False)])
def test_what_is_kept_stays_in_a_cache(height: int, keeps: bool) -> None:
    """The exponential is computed again where a vector's of all points would be as large as a tensor."""
    program, *_ = normalized([16, 48, height, 16], stored=False)
    (kernel,) = program.kernels
    assert ("kept0[" in emit_kernel(kernel)) is keeps


def test_what_long_rows_have_is_computed_first() -> None:
    """A kernel of points alone runs along memory and can be shared by any number of threads."""
    program, found, wanted = normalized([2, 16, 9, 9], apart=True)
    assert [kernel.vector for kernel in program.kernels] == [Vector.OUTER, Vector.INNER, Vector.INNER]
    for mine, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-5)
        assert mine.stride() == other.stride()


def test_passes_of_long_sums_over_several_loops_count_for_themselves() -> None:
    x = torch.randn(20, 6, 120, 33, generator=torch.Generator().manual_seed(2))
    graph = ExampleGraph()
    given = graph.input(x)
    mean = graph.call(p.sum, given, [0, 2])
    spread = graph.call(p.broadcast_in_dim, mean, list(x.shape), [1, 3])
    away = graph.call(p.sub, given, spread)
    program = plan(graph.build(graph.call(p.sum, graph.call(p.mul, away, away), [0, 2])))
    (kernel,) = program.kernels
    assert len(set(re.findall(r"int64_t (added\d+) = 0;", emit_kernel(kernel)))) == 2
    (found,) = Stepper(program)(x)
    exact = x.double() - x.double().sum((0, 2))[None, :, None, :]
    torch.testing.assert_close(found, exact.square().sum((0, 2)).float(), rtol=1e-5, atol=1e-5)
