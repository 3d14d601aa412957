"""Real models, end to end: equal to eager in inference and training, without a graph break."""

from __future__ import annotations

import pytest
import torch

import fxstack
from benchmarks.compare import inference_error, results_error, training_error
from benchmarks.models import WORKLOADS

TOLERANCE = 1e-4


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_inference_equals_eager(name: str, backend: str) -> None:
    error = inference_error(WORKLOADS[name], lambda m: fxstack.compile(m, backend=backend, fullgraph=True))
    assert error <= TOLERANCE


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_training_equals_eager(name: str, backend: str) -> None:
    error = training_error(WORKLOADS[name], lambda m: fxstack.compile(m, backend=backend, fullgraph=True))
    assert error <= TOLERANCE


@pytest.mark.parametrize("name", ["t5", "gpt2", "mlp"])
def test_five_lengths_with_one_compilation(name: str) -> None:
    workload = WORKLOADS[name]
    model, _ = workload.build(training=False)
    captured = []
    inner = fxstack.compile(model, fullgraph=True, dynamic=True, backend=_counting(captured))
    with torch.no_grad():
        for length in workload.lengths:
            inputs = workload.inputs(length)
            assert results_error(inner(**inputs), model(**inputs)) <= TOLERANCE
    assert len(captured) == 1


def _counting(captured: list[object]) -> object:
    inductor = fxstack.backend("inductor")

    def backend(graph_module: torch.fx.GraphModule, example_inputs: list[object]) -> object:
        captured.append(graph_module)
        return inductor(graph_module, example_inputs)

    backend.interface_version = inductor.interface_version  # it compiles for all sizes, as the one it calls
    return backend
