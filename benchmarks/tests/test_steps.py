"""The benchmark of steps of models: what a step leaves, and what is told of all rows."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from benchmarks.models import WORKLOADS
from benchmarks.programs import Row
from benchmarks.steps import row, step, summary


def test_a_step_leaves_gradients_of_one_call() -> None:
    seen: list[nn.Module] = []

    def system(model: Any) -> Any:
        seen.append(model)
        return model

    train = step(WORKLOADS["mlp"], system, training=True)

    def gradients() -> list[Tensor]:
        train()
        return [p.grad.clone() for p in seen[0].parameters() if p.grad is not None]

    first = gradients()
    assert first
    assert all(one.equal(other) for one, other in zip(first, gradients(), strict=True))


def test_inference_gives_a_result_without_a_history() -> None:
    result = step(WORKLOADS["mlp"], lambda model: model, training=False)()
    assert not result.requires_grad


def test_a_row_is_named_after_the_model_and_what_is_done() -> None:
    assert row(WORKLOADS["mlp"], False, 1, stock=False).name == "mlp inference"


def test_speeds_are_multiples_of_the_others() -> None:
    rows = [Row("a", 8.0, 4.0, 2.0), Row("b", 2.0, 1.0, 2.0)]
    assert summary(rows).splitlines() == [
        "2.000 times eager's speed in the geometric mean, at least 1.000",
        "1.000 times stock's speed in the geometric mean, at least 0.500",
    ]
