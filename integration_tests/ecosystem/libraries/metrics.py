"""torchmetrics: metrics updated in a compiled step, or compiled themselves."""

from __future__ import annotations

from typing import Any

import torch
from programs import Compile, Program, Step
from torch import Tensor, nn


def functional(compile: Compile) -> Step:
    """Functions of metrics inside of the compiled evaluation."""
    from torchmetrics.functional import mean_squared_error
    from torchmetrics.functional.classification import multiclass_accuracy, multiclass_f1_score

    model, x, labels = nn.Linear(32, 5), torch.randn(64, 32), torch.randint(5, (64,))

    @compile
    def evaluate(x: Tensor, labels: Tensor) -> Any:
        logits = model(x)
        told = {"num_classes": 5, "validate_args": False}
        accuracy = multiclass_accuracy(logits, labels, **told)
        f1 = multiclass_f1_score(logits, labels, **told)
        return accuracy, f1, mean_squared_error(logits.softmax(-1).amax(-1), torch.ones(64))

    def step() -> Any:
        with torch.no_grad():
            return evaluate(x, labels)

    return step


def updated(compile: Compile) -> Step:
    """A metric updated inside of the compiled step, its result computed outside."""
    from torchmetrics.classification import MulticlassAccuracy

    model, metric = nn.Linear(32, 5), MulticlassAccuracy(5, validate_args=False)
    batches = [(torch.randn(64, 32), torch.randint(5, (64,))) for _ in range(3)]

    @compile
    def evaluate(x: Tensor, labels: Tensor) -> Any:
        logits = model(x)
        metric.update(logits, labels)
        return logits

    def step() -> Any:
        metric.reset()
        with torch.no_grad():
            logits = [evaluate(x, labels) for x, labels in batches]
        return logits, metric.compute()

    return step


def collection(compile: Compile) -> Step:
    """A collection of metrics is compiled, as a module is."""
    from torchmetrics import MetricCollection
    from torchmetrics.classification import MulticlassAccuracy, MulticlassPrecision

    metrics = MetricCollection(
        [MulticlassAccuracy(5, validate_args=False), MulticlassPrecision(5, validate_args=False)]
    )
    compiled, logits, labels = compile(metrics), torch.randn(64, 5), torch.randint(5, (64,))

    def step() -> Any:
        metrics.reset()
        return compiled(logits, labels), metrics.compute()

    return step


NEEDS = ("torchmetrics",)
PROGRAMS = (
    Program("torchmetrics, functions", functional, NEEDS),
    Program("torchmetrics, update inside", updated, NEEDS, 2),
    Program("torchmetrics, collection", collection, NEEDS),
)
