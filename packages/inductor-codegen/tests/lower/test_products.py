"""Matrix products on a GPU are padded where its matrix units gain from that; their results are the same."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen.ir.program import CallExtern, Program, RunKernel
from inductor_codegen.lower.products import Factor, Padding, padding
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import GpuGraph, Stepper, on_device

aten = torch.ops.aten
CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


def decided(
    left: tuple[int, ...],
    right: tuple[int, ...],
    dtype: torch.dtype = torch.bfloat16,
    device: torch.device = GPU,
    along: tuple[int, int] = (-1, -2),
    computed: bool = False,
) -> Padding | None:
    """What is padded of x @ w.t(), or of what ``along`` says."""
    return padding(
        Factor(left, along[0], dtype, device, computed), Factor(right, along[1], dtype, device, computed)
    )


def test_what_is_padded() -> None:
    assert decided((4096, 768), (768, 50257)) == Padding(4096, 768, 50264)
    assert decided((4096, 333), (333, 1024)) == Padding(4096, 336, 1024)
    assert decided((50257, 4096), (4096, 768), along=(-2, -1)) == Padding(50264, 4096, 768)
    assert decided((8, 1024, 1021), (8, 1021, 512), along=(-1, -1)) == Padding(1024, 1024, 512)


@pytest.mark.parametrize(
    ("left", "right", "options"),
    [
        ((4096, 768), (768, 50264), {}),
        ((4096, 768), (768, 50257), {"dtype": torch.float32}),
        ((4096, 768), (768, 50257), {"device": CPU}),
        ((64, 768), (768, 1001), {}),
        ((4095, 768), (768, 1024), {}),
        ((1024, 4095), (4095, 1024), {"along": (-2, -1)}),
        ((0, 768), (768, 50257), {}),
    ],
    ids=[
        "aligned",
        "float32",
        "cpu",
        "little work",
        "rows",
        "between, where nothing runs along it",
        "nothing",
    ],
)
def test_what_is_not(left: tuple[int, ...], right: tuple[int, ...], options: dict[str, Any]) -> None:
    assert decided(left, right, **options) is None


def test_a_copy_may_cost_more_than_the_product_gains() -> None:
    """Of a vector times a large matrix."""
    assert decided((8, 4096), (4096, 50257)) is None
    assert decided((8, 4096), (4096, 50257), computed=True) == Padding(8, 4096, 50264)


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every product that may be padded is."""
    monkeypatch.setattr("inductor_codegen.lower.products._GAIN", 0.0)


def calls(program: Program) -> list[CallExtern]:
    return [step for step in program.steps if isinstance(step, CallExtern)]


def equals_itself(graph: GpuGraph, *outputs: Any) -> Program:
    """The program, which gives what the operators give, with their strides."""
    program = plan(graph.build(*outputs))
    results = Stepper(on_device(program, CPU))(*graph.examples)
    for node, result in zip(outputs, results, strict=True):
        expected = graph.values[node]
        torch.testing.assert_close(result, expected, equal_nan=True)
        assert result.stride() == expected.stride()
    return program


@pytest.mark.usefixtures("cheap")
def test_a_layer_and_its_gradients() -> None:
    graph = GpuGraph()
    x = graph.input(torch.randn(32, 24, dtype=torch.bfloat16))
    w = graph.input(torch.randn(61, 24, dtype=torch.bfloat16), "w")
    bias = graph.input(torch.randn(61, dtype=torch.bfloat16), "b")
    turned = graph.call(p.permute, w, [1, 0])
    scores = graph.call(aten.addmm.default, bias, x, turned)
    slope = graph.call(p.tanh, scores)
    to_x = graph.call(aten.mm.default, slope, w)
    to_w = graph.call(aten.mm.default, graph.call(p.permute, slope, [1, 0]), x)
    program = equals_itself(graph, scores, to_x, to_w, graph.call(p.amax, scores, [1]))
    sizes = [result.sizes for call in calls(program) for result in call.results if result is not None]
    assert sizes == [(32, 64), (32, 24), (64, 24)]
    padded = {step.buffer.name for step in program.steps if "padded" in getattr(step, "buffer", bias).name}
    assert {name for name in padded if "view" not in name} == {"w_padded", "tanh_padded", "b_padded"}


@pytest.mark.usefixtures("cheap")
def test_batches_and_what_is_added() -> None:
    graph = GpuGraph()
    x = graph.input(torch.randn(3, 16, 13, dtype=torch.float16))
    y = graph.input(torch.randn(3, 13, 21, dtype=torch.float16), "y")
    z = graph.input(torch.randn(3, 1, 21, dtype=torch.float16), "z")
    product = graph.call(aten.bmm.default, x, y)
    program = equals_itself(graph, product, graph.call(aten.baddbmm.default, z, x, y, beta=2))
    for call in calls(program):
        (result,) = call.results
        assert result is not None
        assert result.sizes == (3, 16, 24)
    pads = [step for step in program.steps if isinstance(step, RunKernel) and "x" in step.buffers]
    assert len(pads) == 1


def test_infinities_stay_where_they_are() -> None:
    """Padding lies between the factors as zeros, and is cut off elsewhere."""
    graph = GpuGraph()
    data = torch.randn(256, 2048).bfloat16()
    data[0, 0], data[1, 5] = float("inf"), float("nan")
    x = graph.input(data)
    w = graph.input(torch.randn(2045, 2048).bfloat16(), "w")
    equals_itself(graph, graph.call(aten.mm.default, x, graph.call(p.permute, w, [1, 0])))
