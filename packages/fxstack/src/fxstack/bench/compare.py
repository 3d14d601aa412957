"""How far a compiled model is from eager: outputs, loss and every parameter's gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from fxstack.bench.models import Workload, loss_of

Compiler = Callable[[nn.Module], Any]


def relative_error(found: Tensor, expected: Tensor) -> float:
    """``||found - expected|| / ||expected||`` in float64; NaN anywhere that is not in both is infinite."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return float("inf")
    one, two = found.detach().double().flatten(), expected.detach().double().flatten()
    if not torch.equal(one.isnan(), two.isnan()):
        return float("inf")
    scale = float(two.nan_to_num().norm())
    return float((one - two).nan_to_num().norm()) / (scale or 1.0)


def tensors_in(value: Any, path: str = "result") -> Iterator[tuple[str, Tensor]]:
    """Every tensor in nested tuples, lists and mappings (model outputs too), with its path."""
    if isinstance(value, Tensor):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from tensors_in(item, f"{path}[{key!r}]")
    elif isinstance(value, (tuple, list)):
        for position, item in enumerate(value):
            yield from tensors_in(item, f"{path}[{position}]")


def inference_error(workload: Workload, compiler: Compiler, length: int | None = None) -> float:
    """The largest relative error over all results, without gradients."""
    eager, inputs = workload.build(training=False)
    twin, _ = workload.build(training=False)
    inputs = workload.inputs(length)
    with torch.no_grad():
        return results_error(compiler(twin)(**inputs), eager(**inputs))


def results_error(found: Any, expected: Any) -> float:
    """The largest relative error over the tensors of two results of the same structure (infinite if it differs)."""
    left, right = dict(tensors_in(found)), dict(tensors_in(expected))
    if left.keys() != right.keys() or not right:
        return float("inf")
    return max(relative_error(left[path], right[path]) for path in right)


def training_error(workload: Workload, compiler: Compiler) -> float:
    """The largest relative error over loss, every parameter's gradient and every buffer, after one step.

    A gradient is measured against the norm of all gradients where its own norm is below 1e-5 of that: a bias whose
    gradient cancels to rounding noise has no relative error worth the name.
    """
    eager, inputs = workload.build(training=True)
    twin, _ = workload.build(training=True)
    expected, found = loss_of(eager(**inputs)), loss_of(compiler(twin)(**inputs))
    errors = [relative_error(found, expected)]
    expected.backward()  # type: ignore[no-untyped-call]
    found.backward()  # type: ignore[no-untyped-call]
    total = torch.cat([p.grad.flatten() for p in eager.parameters() if p.grad is not None]).double().norm()
    for mine, theirs in zip(twin.parameters(), eager.parameters(), strict=True):
        if (mine.grad is None) != (theirs.grad is None):
            return float("inf")
        if mine.grad is not None and theirs.grad is not None:
            floor = max(float(theirs.grad.double().norm()), 1e-5 * float(total))
            errors.append(float((mine.grad.double() - theirs.grad.double()).norm()) / floor)
    for mine_buffer, their_buffer in zip(twin.buffers(), eager.buffers(), strict=True):
        errors.append(relative_error(mine_buffer, their_buffer))
    return max(errors)
