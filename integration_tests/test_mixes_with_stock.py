"""Our parts and stock's combined, either way, equal eager."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import fxstack
from benchmarks.compare import inference_error, training_error
from benchmarks.models import WORKLOADS


@pytest.fixture(autouse=True)
def _fresh_stock() -> None:
    torch._dynamo.reset()
    torch._inductor.config.compile_threads = 1  # its pool of processes would import torch in each


@pytest.mark.parametrize("name", ["mlp", pytest.param("bert", marks=pytest.mark.nightly)])
def test_our_codegen_under_stock_capture(name: str) -> None:
    workload = WORKLOADS[name]
    assert inference_error(workload, lambda m: torch.compile(m, backend="fxstack", fullgraph=True)) <= 1e-4
    assert training_error(workload, lambda m: torch.compile(m, backend="fxstack", fullgraph=True)) <= 1e-4


def test_our_codegen_under_stock_capture_with_dynamic_sizes() -> None:
    workload = WORKLOADS["mlp"]
    model, _ = workload.build(training=False)
    compiled = torch.compile(model, backend="fxstack", dynamic=True)
    with torch.no_grad():
        for length in workload.lengths:
            inputs = workload.inputs(length)
            torch.testing.assert_close(compiled(**inputs), model(**inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["mlp"])
def test_stock_codegen_under_our_capture(name: str) -> None:
    workload = WORKLOADS[name]
    assert inference_error(workload, lambda m: fxstack.compile(m, backend="inductor_stock")) <= 1e-4
    assert training_error(workload, lambda m: fxstack.compile(m, backend="inductor_stock")) <= 1e-4


def test_stock_passes_modes_and_options_on() -> None:
    x = torch.randn(5)
    for arguments in ({"mode": "strict"}, {"options": {"cache": False}}, {"mode": "default"}):
        compiled = torch.compile(lambda x: x.sin() * 2, backend="fxstack", **arguments)
        torch.testing.assert_close(compiled(x), x.sin() * 2)
        torch._dynamo.reset()
    model = torch.nn.Linear(5, 2)
    expected = model(x)
    model.compile(backend="fxstack")
    torch.testing.assert_close(model(x), expected)
    with pytest.raises(Exception, match="FXS102"):
        torch.compile(lambda x: x.cos(), backend="fxstack", options={"cach": False})(x)


def test_backends_that_torch_brings_along() -> None:
    x = torch.randn(5, requires_grad=True)
    compiled = fxstack.compile(lambda x: x.sin() * 2, backend="aot_eager_decomp_partition", fullgraph=True)
    torch.testing.assert_close(compiled(x), x.sin() * 2)


def test_inside_of_stock() -> None:
    """Stock captures neither the compiler that runs in its region nor what is compiled there, and goes on after it."""
    seen: list[list[str]] = []

    def backend(graph_module: Any, example_inputs: Any) -> Any:
        seen.append([node.name for node in graph_module.graph.nodes if node.op.startswith("call")])
        return graph_module.forward

    inner = fxstack.compile(lambda x: torch.sin(x) * 2)
    outer = torch.compile(lambda x: inner(x + 1).exp().cos(), backend=backend)
    x = torch.randn(3)
    for _ in range(2):
        torch.testing.assert_close(outer(x), (torch.sin(x + 1) * 2).exp().cos())
    assert seen == [["add"], ["exp", "cos"]]


@pytest.mark.nightly
def test_numbers_in_tensors_under_stock_codegen() -> None:
    def program(x: torch.Tensor, a: float) -> torch.Tensor:
        return torch.addmm(x, x, x, alpha=a) + torch.nn.functional.softplus(x, a)

    compiled = fxstack.compile(program, backend="inductor_stock")
    for a in (0.5, 0.7, 1.5):
        x = torch.linspace(-2, 2, 9).view(3, 3)
        torch.testing.assert_close(compiled(x, a), program(x, a))
    assert not compiled.__fxstack_capture__.report.eager
    assert len(compiled.__fxstack_capture__.report.replacements) == 2
