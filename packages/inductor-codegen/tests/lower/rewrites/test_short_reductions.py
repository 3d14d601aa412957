"""Sums of a few elements on a GPU are additions; others, and those of what is computed, stay sums."""

from __future__ import annotations

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen.lower.lowering import lower
from inductor_codegen.lower.values import Reduction
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, GpuGraph, Stepper, on_device

CPU = torch.device("cpu")


def reductions(module: torch.fx.GraphModule) -> int:
    lowered, _ = lower(module)
    return sum(isinstance(value.formula, Reduction) for value in lowered.values)


@pytest.mark.parametrize("dims", [[1], [1, 2], [3]])
def test_the_same_sums(dims: list[int]) -> None:
    graph = GpuGraph()
    x = graph.input(torch.randn(2, 4, 3, 5, dtype=torch.bfloat16))
    wide = graph.call(p.convert_dtype, graph.call(p.permute, x, [1, 0, 2, 3]), torch.float32)
    total = graph.call(p.sum, wide, dims)
    module = graph.build(total)
    assert reductions(module) == 0
    (result,) = Stepper(on_device(plan(module), CPU))(*graph.examples)
    torch.testing.assert_close(result, graph.values[total])


def test_long_and_computed_sums() -> None:
    graph = GpuGraph()
    x = graph.input(torch.randn(4, 9))
    assert (
        reductions(graph.build(graph.call(p.sum, x, [1]), graph.call(p.sum, graph.call(p.exp, x), [0]))) == 2
    )


def test_other_reductions_and_devices() -> None:
    graph = GpuGraph()
    assert reductions(graph.build(graph.call(p.amax, graph.input(torch.randn(2, 9)), [0]))) == 1
    here = ExampleGraph()
    assert reductions(here.build(here.call(p.sum, here.input(torch.randn(2, 9)), [0]))) == 1
