"""Large products of float32: which calls are offered to the host's functions, and what they give."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from inductor_codegen import CodegenOptions, compile_graph
from inductor_codegen.codegen.wrapper.entry import write_entry
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def _faster_products() -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    yield
    torch.set_float32_matmul_precision(before)


def rand(*sizes: int) -> Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(len(sizes)))


def graph_of(op: Any, inputs: list[Tensor], **kwargs: Any) -> Any:
    graph = ExampleGraph()
    return graph.build(graph.call(op, *[graph.input(x, f"x{i}") for i, x in enumerate(inputs)], **kwargs))


def called(module: Any) -> str:
    """The function that computes the product."""
    found = re.findall(r"if \((\w*mm_out\w*)\(f\.", write_entry(plan(module)).text)
    (name,) = found
    return str(name)


LARGE = [
    (aten.mm.default, [rand(256, 256), rand(256, 256)]),
    (aten.mm.default, [rand(256, 300), rand(512, 300).t()]),
    (aten.mm.default, [rand(300, 256).t(), rand(300, 512)]),
    (aten.mm.default, [rand(1024, 256).t(), rand(512, 1024).t()]),
    (aten.addmm.default, [rand(512), rand(256, 300), rand(512, 300).t()]),
    (aten.addmm.default, [rand(512), rand(300, 256).t(), rand(300, 512)]),
]


@pytest.mark.parametrize("op, inputs", LARGE)
def test_less_exact_ones_are_near_the_operator(tmp_path: Path, op: Any, inputs: list[Tensor]) -> None:
    module = graph_of(op, inputs)
    assert called(module) in ("fx_mm_out_high", "fx_addmm_out_high")
    compiled = compile_graph(module, CodegenOptions(tmp_path))
    (result,) = compiled(*inputs)
    exact, expected = op(*[x.double() for x in inputs]), op(*inputs)
    assert result.stride() == expected.stride()
    unit = torch.finfo(torch.float32).eps * exact.abs().max()
    assert (result - exact).abs().max() <= 3 * (expected - exact).abs().max() + 4 * unit
    assert torch.equal(compiled(*inputs)[0], result)


@pytest.mark.parametrize("precision", ["highest", "medium"])
@pytest.mark.parametrize("op, inputs", LARGE)
def test_products_are_torchs_unless_faster_ones_are_asked_for(
    op: Any, inputs: list[Tensor], precision: str
) -> None:
    torch.set_float32_matmul_precision(precision)
    module = graph_of(op, inputs)
    assert called(module).startswith("aoti_torch_cpu_")
    assert "fx_split_product" not in write_entry(plan(module)).text


@pytest.mark.parametrize(
    "op, inputs",
    [
        (aten.mm.default, [rand(256, 2048), rand(2048, 256)]),  # sums of so many terms would be less exact
        (aten.mm.default, [rand(8, 4096), rand(4096, 1024)]),
        (aten.mm.default, [rand(256, 512)[:, :256], rand(256, 256)]),
    ],
)
def test_what_would_be_less_exact_by_onednn_is_not_offered_to_it(op: Any, inputs: list[Tensor]) -> None:
    assert called(graph_of(op, inputs)) == "fx_mm_out"


@pytest.mark.parametrize(
    "op, inputs, kwargs",
    [
        (aten.mm.default, [rand(64, 64), rand(64, 64)], {}),
        (aten.mm.default, [rand(256, 512)[:, ::2], rand(256, 256)], {}),
        (aten.mm.default, [rand(256, 256).double(), rand(256, 256).double()], {}),
        (aten.addmm.default, [rand(256, 256), rand(256, 256), rand(256, 256)], {}),
        (aten.addmm.default, [rand(256), rand(256, 256), rand(256, 256)], {"alpha": 2}),
        (aten.addmm.default, [rand(256), rand(256, 256), rand(256, 256)], {"beta": 0.5}),
        (aten.addmm.default, [rand(1).expand(256), rand(256, 256), rand(256, 256)], {}),
    ],
)
def test_others_are_torchs_operator(op: Any, inputs: list[Tensor], kwargs: dict[str, Any]) -> None:
    assert called(graph_of(op, inputs, **kwargs)).startswith("aoti_torch_cpu_")


def test_sizes_that_vary_are_looked_at_when_the_product_is_computed() -> None:
    graph = ExampleGraph()
    graph.symbol()
    x, y = torch.randn(ExampleGraph.PRIMES[0], 256), torch.randn(256, 256)
    assert called(graph.build(graph.call(aten.mm.default, graph.input(x), graph.input(y)))) == "fx_mm_out"


@pytest.mark.parametrize("name", ["fx_split_product", "fx_product"])
def test_a_host_without_the_functions_calls_the_operator(name: str) -> None:
    text = write_entry(plan(graph_of(*LARGE[0]))).text
    assert f'*(void**)&{name} = lookup("{name}");' in text
    assert f"if ({name} && !{name}(" in text
