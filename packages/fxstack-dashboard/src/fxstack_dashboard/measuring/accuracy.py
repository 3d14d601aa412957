"""How far a backend's results are from a float64 reference, compared with how far eager's are.

The distance of a result, gradient or buffer is its relative error, ``||found - exact|| / ||exact||``; a gradient is
measured against the norm of all gradients where its own is less than 1e-5 of that, since one that cancels to rounding
noise has no relative error worth the name.

Each tensor is accurate enough if its distance is at most ``MARGIN`` times eager's of the same tensor, or ``ROUNDINGS``
roundings of its dtype. Where one is not, eager is run on parameters that differ from the model's in their last places:
in a model in which that alone moves a tensor as far (a ReLU's input that is a rounding away from 0), rounding decides,
and ``MARGIN`` times that movement is allowed. What is told is of the tensor that comes nearest to what is allowed, or
exceeds it most.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fxstack_dashboard.measuring.steps import Step, make_step
from fxstack_dashboard.suites.workload import Workload

MARGIN = 8.0
ROUNDINGS = 64.0
_NUDGES = 4
_GRADIENT_FLOOR = 1e-5
Outcome = dict[str, Tensor]


class Accuracy(NamedTuple):
    """Distances of the backend and of eager from the reference, what was allowed, the reference's kind (``float64``, or
    ``eager`` where the model does not run in float64), and what is wrong, if anything."""

    backend: float
    eager: float
    allowed: float
    reference: str
    problem: str | None


def judge(workload: Workload, phase: str, device: str, eager: Outcome, found: Outcome) -> Accuracy:
    """Whether ``found`` is as good as ``eager``, which holds what the same step gives without a compiler."""
    problem = _mismatch(eager, found)
    if problem is not None:
        return Accuracy(float("inf"), 0.0, 0.0, "eager", problem)
    exact, reference = _exact(workload, phase, device, eager)
    distances, of_eager = _distances(found, exact), _distances(eager, exact)
    allowed = {
        name: max(MARGIN * of_eager[name], ROUNDINGS * torch.finfo(eager[name].dtype).eps)
        for name in distances
    }
    if any(not distance <= allowed[name] for name, distance in distances.items()):
        moved = _sensitivity(workload, phase, device, exact)
        allowed = {name: max(most, MARGIN * moved.get(name, 0.0)) for name, most in allowed.items()}
    if not distances:
        return Accuracy(0.0, 0.0, 0.0, reference, None)
    worst = max(distances, key=lambda name: distances[name] / allowed[name])
    distance, most = distances[worst], allowed[worst]
    wrong = None
    if not distance <= most:
        wrong = f"{worst} is {distance:.3g} from {reference}, eager {of_eager[worst]:.3g}; allowed {most:.3g}"
    return Accuracy(distance, of_eager[worst], most, reference, wrong)


def _mismatch(expected: Outcome, found: Outcome) -> str | None:
    if expected.keys() != found.keys():
        odd = sorted(expected.keys() ^ found.keys())
        return f"{odd[0]} is in only one of the results of eager and of the backend"
    for name, one in expected.items():
        other = found[name]
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"{name} is {other.dtype}{list(other.shape)}, in eager {one.dtype}{list(one.shape)}"
        if not torch.equal(one.isnan(), other.isnan()):
            return f"{name} has NaN in other places than in eager"
        if not torch.equal(_infinite(one), _infinite(other)):
            return f"{name} has infinities in other places than in eager"
        if not one.is_floating_point() and not one.is_complex() and not torch.equal(one, other):
            return f"{name} differs from eager"
    return None


def _infinite(value: Tensor) -> Tensor:
    """The infinite elements, zero elsewhere."""
    return value.where(value.isinf(), torch.zeros_like(value))


def _exact(workload: Workload, phase: str, device: str, eager: Outcome) -> tuple[Outcome, str]:
    try:
        exact = make_step(workload, phase, device, dtype=torch.float64).outcome()
    except Exception:  # a model with dtypes of its own does not run in float64, whatever it raises then
        return eager, "eager"
    same = exact.keys() == eager.keys() and all(exact[name].shape == eager[name].shape for name in exact)
    return (exact, "float64") if same else (eager, "eager")


def _distances(found: Outcome, exact: Outcome) -> dict[str, float]:
    """The relative error of each tensor of floating-point or complex numbers."""
    squares = [_norm(value) ** 2 for name, value in exact.items() if name.startswith("gradient of ")]
    floor = _GRADIENT_FLOOR * sum(squares) ** 0.5
    errors = {}
    for name, value in found.items():
        if value.is_floating_point() or value.is_complex():
            scale = max(_norm(exact[name]), floor if name.startswith("gradient of ") else 0.0)
            errors[name] = _norm(_wide(value) - _wide(exact[name])) / (scale or 1.0)
    return errors


def _norm(value: Tensor) -> float:
    return float(_wide(value).nan_to_num(posinf=0.0, neginf=0.0).norm())


def _wide(value: Tensor) -> Tensor:
    return value.to(torch.complex128 if value.is_complex() else torch.float64)


def _sensitivity(workload: Workload, phase: str, device: str, exact: Outcome) -> dict[str, float]:
    """The largest distance of eager from the reference, of each tensor, when parameters change in their last places."""
    moved: dict[str, float] = {}
    for seed in range(_NUDGES):
        step = make_step(workload, phase, device)
        _nudge(step, seed)
        for name, distance in _distances(step.outcome(), exact).items():
            moved[name] = max(distance, moved.get(name, 0.0))
    return moved


def _nudge(step: Step, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in step.module.parameters():
            if parameter.is_floating_point():
                signs = torch.randint(0, 3, parameter.shape, generator=generator) - 1
                eps = torch.finfo(parameter.dtype).eps
                parameter.mul_(1 + eps * signs.to(parameter))
