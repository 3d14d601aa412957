"""How far a backend's results are from a float64 reference, compared with how far eager's are.

The distance of two sets of results is the largest relative error among them, ``||found - exact|| / ||exact||``; a
gradient is measured against the norm of all gradients where its own is less than 1e-5 of that, since one that cancels
to rounding noise has no relative error worth the name.

A backend is accurate enough if its distance is at most ``MARGIN`` times eager's, or ``ROUNDINGS`` roundings of the
dtype. Where it is not, eager is run on parameters that differ from the model's in their last places: in a model in
which that alone moves results as far (a ReLU's input that is a rounding away from 0), rounding decides, and ``MARGIN``
times that movement is allowed.
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
    distance, worst = _distance(found, exact)
    of_eager, _ = _distance(eager, exact)
    allowed = max(MARGIN * of_eager, ROUNDINGS * _rounding(eager))
    if not distance <= allowed:
        allowed = max(allowed, MARGIN * _sensitivity(workload, phase, device, exact))
    wrong = None
    if not distance <= allowed:
        wrong = f"{worst} is {distance:.3g} from {reference}, eager {of_eager:.3g}; allowed {allowed:.3g}"
    return Accuracy(distance, of_eager, allowed, reference, wrong)


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
        if not one.is_floating_point() and not one.is_complex() and not torch.equal(one, other):
            return f"{name} differs from eager"
    return None


def _exact(workload: Workload, phase: str, device: str, eager: Outcome) -> tuple[Outcome, str]:
    try:
        exact = make_step(workload, phase, device, dtype=torch.float64).outcome()
    except Exception:  # a model with dtypes of its own does not run in float64, whatever it raises then
        return eager, "eager"
    same = exact.keys() == eager.keys() and all(exact[name].shape == eager[name].shape for name in exact)
    return (exact, "float64") if same else (eager, "eager")


def _distance(found: Outcome, exact: Outcome) -> tuple[float, str]:
    """The largest relative error, and of what."""
    squares = [_norm(value) ** 2 for name, value in exact.items() if name.startswith("gradient of ")]
    floor = _GRADIENT_FLOOR * sum(squares) ** 0.5
    worst, of_what = 0.0, "every result"
    for name, value in found.items():
        if not (value.is_floating_point() or value.is_complex()):
            continue
        scale = max(_norm(exact[name]), floor if name.startswith("gradient of ") else 0.0)
        error = _norm(value.double() - exact[name].double()) / (scale or 1.0)
        if error > worst:
            worst, of_what = error, name
    return worst, of_what


def _norm(value: Tensor) -> float:
    return float(value.double().nan_to_num(posinf=0.0, neginf=0.0).norm())


def _rounding(outcome: Outcome) -> float:
    return max((torch.finfo(v.dtype).eps for v in outcome.values() if v.is_floating_point()), default=0.0)


def _sensitivity(workload: Workload, phase: str, device: str, exact: Outcome) -> float:
    """The largest distance of eager from the reference when parameters change in their last places."""
    moved = 0.0
    for seed in range(_NUDGES):
        step = make_step(workload, phase, device)
        _nudge(step, seed)
        moved = max(moved, _distance(step.outcome(), exact)[0])
    return moved


def _nudge(step: Step, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in step.module.parameters():
            if parameter.is_floating_point():
                signs = torch.randint(0, 3, parameter.shape, generator=generator) - 1
                eps = torch.finfo(parameter.dtype).eps
                parameter.mul_(1 + eps * signs.to(parameter))
