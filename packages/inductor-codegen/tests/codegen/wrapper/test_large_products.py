"""Large products of float32: which calls are offered to the host's function, and what they give."""

from __future__ import annotations

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
def _less_exact_products() -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    yield
    torch.set_float32_matmul_precision(before)


def rand(*sizes: int) -> Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(len(sizes)))


def graph_of(op: Any, inputs: list[Tensor], **kwargs: Any) -> Any:
    graph = ExampleGraph()
    return graph.build(graph.call(op, *[graph.input(x, f"x{i}") for i, x in enumerate(inputs)], **kwargs))


LARGE = [
    (aten.mm.default, [rand(256, 256), rand(256, 256)]),
    (aten.mm.default, [rand(256, 300), rand(512, 300).t()]),
    (aten.mm.default, [rand(300, 256).t(), rand(300, 512)]),
    (aten.mm.default, [rand(1024, 256).t(), rand(512, 1024).t()]),
    (aten.addmm.default, [rand(512), rand(256, 300), rand(512, 300).t()]),
    (aten.addmm.default, [rand(512), rand(300, 256).t(), rand(300, 512)]),
]


@pytest.mark.parametrize("op, inputs", LARGE)
def test_as_exact_as_the_operator(tmp_path: Path, op: Any, inputs: list[Tensor]) -> None:
    module = graph_of(op, inputs)
    assert "fx_product" in write_entry(plan(module)).text
    compiled = compile_graph(module, CodegenOptions(tmp_path))
    (result,) = compiled(*inputs)
    exact, expected = op(*[x.double() for x in inputs]), op(*inputs)
    assert result.stride() == expected.stride()
    unit = torch.finfo(torch.float32).eps * exact.abs().max()
    assert (result - exact).abs().max() <= 3 * (expected - exact).abs().max() + 4 * unit
    assert torch.equal(compiled(*inputs)[0], result)


@pytest.mark.parametrize(
    "op, inputs, kwargs",
    [
        (aten.mm.default, [rand(64, 64), rand(64, 64)], {}),
        (aten.mm.default, [rand(8, 4096), rand(4096, 1024)], {}),
        (aten.mm.default, [rand(256, 2048), rand(2048, 256)], {}),  # longer sums would be less exact
        (aten.mm.default, [rand(256, 512)[:, :256], rand(256, 256)], {}),
        (aten.mm.default, [rand(256, 256).double(), rand(256, 256).double()], {}),
        (aten.addmm.default, [rand(256, 256), rand(256, 256), rand(256, 256)], {}),
        (aten.addmm.default, [rand(256), rand(256, 256), rand(256, 256)], {"alpha": 2}),
        (aten.addmm.default, [rand(256), rand(256, 256), rand(256, 256)], {"beta": 0.5}),
        (aten.addmm.default, [rand(1).expand(256), rand(256, 256), rand(256, 256)], {}),
    ],
)
def test_others_are_torchs_operator(op: Any, inputs: list[Tensor], kwargs: dict[str, Any]) -> None:
    assert "fx_product" not in write_entry(plan(graph_of(op, inputs, **kwargs))).text


def test_products_are_torchs_unless_less_exact_ones_are_allowed() -> None:
    torch.set_float32_matmul_precision("highest")
    assert "fx_product" not in write_entry(plan(graph_of(*LARGE[0]))).text


def test_a_host_without_the_function_calls_the_operator() -> None:
    text = write_entry(plan(graph_of(*LARGE[0]))).text
    assert '*(void**)&fx_product = lookup("fx_product");' in text
    assert "if (fx_product && !fx_product(" in text
