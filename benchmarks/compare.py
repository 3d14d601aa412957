"""How far a compiled model is from eager: outputs, loss and every parameter's gradient."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.models import Workload, loss_of
from fxstack.verification.compare import nudge_
from fxstack_dashboard.measuring.steps import tensors_in

Compiler = Callable[[nn.Module], Any]

_NEGLIGIBLE = 5e-5
"""An error that rounding explains by itself."""
_NUDGES = 8
"""Other starting points, at most, of a step whose error is larger."""
_MARGIN = 3.0
"""How many times as large as the way of eager between them the error may be."""


def relative_error(found: Tensor, expected: Tensor) -> float:
    """``||found - expected|| / ||expected||`` in float64; NaN anywhere that is not in both is infinite."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return float("inf")
    one, two = found.detach().double().flatten(), expected.detach().double().flatten()
    if not torch.equal(one.isnan(), two.isnan()):
        return float("inf")
    scale = float(two.nan_to_num().norm())
    return float((one - two).nan_to_num().norm()) / (scale or 1.0)


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

    A unit of a ReLU whose input is a rounding away from 0 may count in one run and not in another, and its gradient
    then moves those of all layers before it. If the error is large, the step is taken again from parameters that
    differ in their last places, eager and compiled: where eager itself moves about as far between them, rounding
    decides, and the smallest error counts. What is compiled wrongly is wrong from all of them.
    """
    eager, inputs = workload.build(training=True)
    twin, _ = workload.build(training=True)
    compiled, state = compiler(twin), copy.deepcopy(eager.state_dict())
    expected = _step(eager, eager, inputs)
    error = _step_error(_step(compiled, twin, inputs), expected)
    if error <= _NEGLIGIBLE:
        return error
    errors, moved = [error], 0.0
    for seed in range(_NUDGES):
        for model in (eager, twin):
            _restart(model, state, seed)
        other = _step(eager, eager, inputs)
        moved = max(moved, _step_error(other, expected))
        errors.append(_step_error(_step(compiled, twin, inputs), other))
        if error <= _MARGIN * moved and min(errors) <= _NEGLIGIBLE:
            break
    return min(errors) if error <= _MARGIN * moved < float("inf") else error


@dataclass(frozen=True, slots=True)
class _Step:
    """What one step leaves behind."""

    loss: Tensor
    gradients: list[Tensor | None]
    buffers: list[Tensor]


def _step(called: Any, model: nn.Module, inputs: dict[str, Any]) -> _Step:
    loss = loss_of(called(**inputs))
    loss.backward()  # type: ignore[no-untyped-call]
    gradients = [p.grad for p in model.parameters()]
    model.zero_grad()
    return _Step(loss.detach(), gradients, [buffer.clone() for buffer in model.buffers()])


def _restart(model: nn.Module, state: Mapping[str, Any], seed: int) -> None:
    """Back to the state, with parameters changed by a rounding each."""
    generator = torch.Generator().manual_seed(seed)
    model.load_state_dict(state)
    with torch.no_grad():
        for parameter in model.parameters():
            nudge_(parameter, generator)


def _step_error(found: _Step, expected: _Step) -> float:
    errors = [relative_error(found.loss, expected.loss)]
    total = torch.cat([g.flatten() for g in expected.gradients if g is not None]).double().norm()
    for mine, theirs in zip(found.gradients, expected.gradients, strict=True):
        if (mine is None) != (theirs is None):
            return float("inf")
        if mine is not None and theirs is not None:
            floor = max(float(theirs.double().norm()), 1e-5 * float(total))
            errors.append(float((mine.double() - theirs.double()).norm()) / floor)
    for mine_buffer, their_buffer in zip(found.buffers, expected.buffers, strict=True):
        errors.append(relative_error(mine_buffer, their_buffer))
    return max(errors)
