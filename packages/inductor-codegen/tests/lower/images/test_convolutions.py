"""Which convolutions are faster with their images channels-last, by device, shape and dtype."""

from __future__ import annotations

import pytest
import torch
from torch.fx import Node

from fx_interface.graph import spec_of_node
from inductor_codegen.lower.images.convolutions import gain, stays_row_major
from inductor_codegen.testing import ExampleGraph, GpuGraph

aten = torch.ops.aten


def convolution(
    graph: ExampleGraph, groups: int, channels: int, kernel: int, size: int, dtype: torch.dtype
) -> Node:
    x = graph.input(torch.randn(1, channels, size, size, dtype=dtype))
    weight = graph.input(torch.randn(channels, channels // groups, kernel, kernel, dtype=dtype), "w")
    how = ([1, 1], [kernel // 2] * 2, [1, 1], False, [0, 0], groups)
    return graph.call(aten.convolution.default, x, weight, None, *how)


@pytest.mark.parametrize(
    ("groups", "channels", "kernel", "dtype", "expected"),
    [
        (1, 32, 3, torch.bfloat16, True),
        (1, 32, 3, torch.float32, True),
        (32, 32, 7, torch.bfloat16, True),
        (32, 32, 7, torch.float32, True),
        (32, 32, 3, torch.float32, True),
        (1, 4, 3, torch.bfloat16, False),
        (1, 32, 3, torch.float64, False),
    ],
)
def test_on_a_gpu(groups: int, channels: int, kernel: int, dtype: torch.dtype, expected: bool) -> None:
    node = convolution(GpuGraph(), groups, channels, kernel, 8, dtype)
    assert (gain(node) > 0) is expected
    assert not stays_row_major(node)


ONEDNN = torch.backends.mkldnn.is_available()
BFLOAT16 = ONEDNN and torch.ops.mkldnn._is_mkldnn_bf16_supported()


@pytest.mark.parametrize(
    ("groups", "channels", "kernel", "size", "dtype", "expected"),
    [
        (32, 32, 3, 8, torch.float32, ONEDNN),
        (32, 32, 7, 8, torch.float32, ONEDNN),
        (1, 32, 1, 8, torch.float32, ONEDNN),
        (1, 32, 3, 64, torch.float32, ONEDNN),
        (1, 128, 3, 14, torch.float32, False),
        (1, 4, 3, 64, torch.float32, False),
        (1, 32, 1, 8, torch.bfloat16, BFLOAT16),
        (1, 32, 1, 8, torch.float16, False),
        (1, 32, 1, 8, torch.float64, False),
    ],
)
def test_on_a_cpu(
    groups: int, channels: int, kernel: int, size: int, dtype: torch.dtype, expected: bool
) -> None:
    assert (gain(convolution(ExampleGraph(), groups, channels, kernel, size, dtype)) > 0) is expected


def test_a_weight_larger_than_its_images_is_not_moved() -> None:
    graph = ExampleGraph()
    assert stays_row_major(convolution(graph, 1, 128, 3, 8, torch.float32))
    assert not stays_row_major(convolution(graph, 1, 128, 1, 4, torch.float32))  # lies the same either way
    assert not stays_row_major(convolution(graph, 1, 16, 3, 32, torch.float32))


def test_images_of_one_dimension() -> None:
    graph = ExampleGraph()
    x, weight = graph.input(torch.randn(2, 16, 8)), graph.input(torch.randn(16, 16, 3), "w")
    node = graph.call(aten.convolution.default, x, weight, None, [1], [1], [1], False, [0], 1)
    assert gain(node) == 0


def test_a_size_that_varies_counts_as_many() -> None:
    """One image alone would be smaller than the weight."""
    graph = ExampleGraph()
    graph.symbol()
    x, weight = graph.input(torch.randn(11, 64, 20, 20)), graph.input(torch.randn(64, 64, 3, 3), "w")
    node = graph.call(aten.convolution.default, x, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    assert not isinstance(spec_of_node(x).sizes[0], int)  # type: ignore[union-attr]
    assert not stays_row_major(node)
    assert (gain(node) > 0) is ONEDNN
