"""Depthwise convolutions of channels-last images on a GPU are formulas; others stay library calls."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

from inductor_codegen.lower.images.channels_last import choose_layouts
from inductor_codegen.lower.lowering import lower
from inductor_codegen.lower.values import Depthwise, Lowered
from inductor_codegen.testing import ExampleGraph, GpuGraph

aten = torch.ops.aten
LAST = torch.channels_last


def convolution(
    graph: ExampleGraph, *, channels: int = 16, size: int = 8, multiplier: int = 1, **given: Any
) -> Any:
    dtype, kernel = given.get("dtype", torch.float32), given.get("kernel", 3)
    x = torch.randn(2, channels, size, size, dtype=dtype).to(memory_format=given.get("layout", LAST))
    weight = torch.randn(channels * multiplier, 1, kernel, kernel, dtype=dtype)
    how = ([1, 1], [1, 1], [1, 1], given.get("transposed", False), [0, 0], given.get("groups", channels))
    bias = graph.input(torch.randn(channels), "bias") if given.get("bias") else None
    return graph.call(aten.convolution.default, graph.input(x), graph.input(weight, "weight"), bias, *how)


def lowered(module: GraphModule, *, exact: bool = False) -> Lowered:
    return lower(module, choose_layouts(module, exact=exact))[0]


def formulas(found: Lowered) -> list[Depthwise]:
    return [value.formula for value in found.values if isinstance(value.formula, Depthwise)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_what_is_ours(dtype: torch.dtype) -> None:
    graph = GpuGraph()
    found = lowered(graph.build(convolution(graph, dtype=dtype)))
    (formula,) = formulas(found)
    assert not found.calls
    assert [(w.length, w.step, w.pad, w.gap) for w in formula.windows] == [(3, 1, 1, 1)] * 2


@pytest.mark.parametrize(
    "given",
    [
        {"dtype": torch.float64},
        {"multiplier": 2},
        {"channels": 4},
        {"groups": 1, "channels": 1},
        {"transposed": True},
        {"kernel": 11, "size": 16},
    ],
    ids=["float64", "multiplier", "few-channels", "dense", "transposed", "large"],
)
def test_what_the_library_does(given: dict[str, Any]) -> None:
    graph = GpuGraph()
    found = lowered(graph.build(convolution(graph, **given)))
    assert len(found.calls) == 1
    assert not formulas(found)


def test_row_major_images_that_nothing_moves() -> None:
    """Where layouts are as the specs say."""
    graph = GpuGraph()
    module = graph.build(convolution(graph, layout=torch.contiguous_format))
    assert len(lower(module)[0].calls) == 1


def test_on_a_cpu_and_in_eagers_bits() -> None:
    here, there = ExampleGraph(), GpuGraph()
    assert len(lowered(here.build(convolution(here))).calls) == 1
    assert len(lowered(there.build(convolution(there)), exact=True).calls) == 1


def test_sizes_that_vary() -> None:
    """The number of images may, heights do not."""
    graph = GpuGraph()
    graph.symbol()
    x = graph.input(torch.randn(11, 16, 8, 8).to(memory_format=LAST))
    weight, how = graph.input(torch.randn(16, 1, 3, 3), "w"), ([1, 1], [1, 1], [1, 1], False, [0, 0], 16)
    assert (
        len(formulas(lowered(graph.build(graph.call(aten.convolution.default, x, weight, None, *how))))) == 1
    )
    graph = GpuGraph()
    graph.symbol()
    x = graph.input(torch.randn(2, 16, 11, 8).to(memory_format=LAST))
    weight = graph.input(torch.randn(16, 1, 3, 3), "w")
    found = lowered(graph.build(graph.call(aten.convolution.default, x, weight, None, *how)))
    assert not formulas(found)
    assert len(found.calls) == 1


@pytest.mark.parametrize(("size", "copies"), [(8, 0), (512, 1)])
def test_weights_are_copied_beside_large_images(size: int, copies: int) -> None:
    graph = GpuGraph()
    module = graph.build(convolution(graph, size=size))
    found = lowered(module)
    (formula,) = formulas(found)
    weight = found.values[formula.weight.source]
    assert (weight.formula is not None) == bool(copies)
    assert weight.strides[0] == (1 if copies else 9)


@pytest.mark.parametrize("mask", [(True, True, True), (False, True, False), (True, False, True)])
def test_gradients_are_taken_apart(mask: tuple[bool, ...]) -> None:
    graph = GpuGraph()
    x, slope = (graph.input(torch.randn(2, 16, 8, 8).to(memory_format=LAST), name) for name in "xg")
    weight = graph.input(torch.randn(16, 1, 3, 3), "w")
    how = ([16], [1, 1], [1, 1], [1, 1], False, [0, 0], 16, list(mask))
    made = graph.call(aten.convolution_backward.default, slope, x, weight, *how)
    asked = [position for position in range(3) if mask[position]]
    found = lowered(graph.build(*(graph.call(operator.getitem, made, position) for position in asked)))
    assert [formula.transposed for formula in formulas(found)] == [True] * mask[0]
    assert len(found.windows) == len(found.calls) == mask[1]
