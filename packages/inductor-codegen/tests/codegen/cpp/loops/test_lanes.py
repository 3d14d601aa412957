"""Rows that are reduced side by side: a group's number is laid out for the lanes of its channels, once."""

from __future__ import annotations

import re

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.cpp.emit import emit_kernel
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
    assert "32 - block" in text  # all channels are lanes
    (array,) = set(re.findall(r"(r\d+)\[lane\] = ", text))
    (loaded,) = re.findall(r"(t\d+) = in\d\[[^\]]*/ 4[^\]]*\]", text)
    assert f"{array}[lane] = {loaded};" in text


def test_long_groups_are_rows_of_their_own() -> None:
    *_, text = sums(2, 8, 16, 300, torch.float32)
    assert "16 - block" in text
    assert not re.search(r"r\d+\[lane\]", text)
