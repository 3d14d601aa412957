"""One tiny model in training: eager, eager in float64 beside it, and compiled, at two sizes."""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any
from unittest import mock

import torch
from comparing import leaves
from mistakes import line_of, mistakes
from tiny_models import NotFitting, TinyModel, build

import fxstack
from fxstack.verification.compare import Bounds, Difference, difference, distance, not_by_luck, nudge_
from fxstack.verification.referee import Referee

SIZES = ((2, 12), (3, 16))
"""Batch sizes and sequence lengths."""
BOUNDS = Bounds(margin=3.0, roundings=32.0)
"""How far from float64 a compiled value may be: times eager's distance, or roundings."""

_NUDGED = 16
"""Runs of eager with other last places, where a value differs: in one run eager may have been lucky."""


@dataclass(slots=True)
class Trained:
    """One architecture. ``failure`` is empty where all was as good as eager, and begins with "left out" where eager
    does not train it; ``details`` name each value that is not. ``worst`` is the largest distance from float64 in
    eager's, among values that are more than 32 roundings away. ``inputs`` are those of the first size; ``uncompiled``
    the functions that ran uncompiled, with the reason; ``sources`` the commit and the date."""

    name: str
    failure: str = ""
    details: list[str] = field(default_factory=list)
    sizes: int = 0
    inputs: list[str] = field(default_factory=list)
    uncompiled: list[str] = field(default_factory=list)
    seconds: float = 0.0
    worst: float | None = None
    sources: str = ""


def trained(name: str) -> dict[str, Any]:
    """The outcome for an architecture, as JSON data."""
    outcome = Trained(name)
    start = time.perf_counter()
    try:
        _train(build(name, training=True), outcome)
    except NotFitting as error:
        outcome.failure = f"left out: {error}"
    outcome.seconds = round(time.perf_counter() - start, 1)
    return asdict(outcome)


def _train(tiny: TinyModel, outcome: Trained) -> None:
    model = tiny.model.train()
    outcome.inputs = sorted(tiny.inputs)
    compiled = fxstack.compile(model)
    for size in SIZES:
        inputs = tiny.inputs if size == SIZES[0] else tiny.resized(*size)
        if inputs is None:
            continue
        outcome.sizes += 1
        at = f"{size[0]} x {size[1]}"
        try:
            expected, exact = _refereed(model, inputs)
        except Exception as error:
            outcome.failure = f"left out: eager does not train it: {line_of(error, 300)}"
            return
        least = _roundings(model, expected, exact)
        if _differ(step(model, model, inputs), expected, exact, least):
            outcome.failure = "left out: eager differs from itself"
            return
        try:
            with mistakes() as logged:
                found = step(compiled, model, inputs)
        except Exception as error:
            outcome.failure = f"{at}: raised {line_of(error, 300)}"
            return
        outcome.worst = max(outcome.worst or 0.0, _worst(found, expected, exact, least))
        differing = _differ(found, expected, exact, least)
        for seed in range(_NUDGED):
            if not differing:
                break
            differing = not_by_luck(differing, [_distances(model, inputs, seed)], BOUNDS)
        if differing:
            with mock.patch("torch.compiler.is_compiling", return_value=True):
                told = _refereed(model, inputs)
            differing = differing if _differ(found, *told, _roundings(model, *told)) else []
        differing.sort(
            key=lambda item: -item.compiled_error / item.allowed if item.allowed else float("-inf")
        )
        outcome.details += [f"{at}: {line}" for line in [*differing, *logged]]
    capture = getattr(compiled, "__fxstack_capture__", None)
    if capture is not None:
        outcome.uncompiled = [f"{code.co_qualname}: {reason}" for code, reason in capture.report.eager]
    if outcome.details:
        outcome.failure = f"{len(outcome.details)} values: {outcome.details[0]}"


def step(function: Callable[..., Any], model: torch.nn.Module, inputs: dict[str, Any]) -> dict[str, Any]:
    """Results, loss, gradients and buffers of one step from the model's present state, which is kept."""
    state = copy.deepcopy(model.state_dict())
    model.zero_grad()
    _seed()
    given = {
        key: value.clone() if isinstance(value, torch.Tensor) else value for key, value in inputs.items()
    }
    found: dict[str, Any] = dict(leaves(function(**given)))
    loss, size = _loss(found)
    loss.backward()
    found["loss"] = torch.stack([loss, size])
    found |= {f"gradient of {name}": p.grad for name, p in model.named_parameters()}
    found |= {f"buffer {name}": buffer.clone() for name, buffer in model.named_buffers()}
    model.zero_grad()
    with torch.no_grad():
        model.load_state_dict(state)
    return found


def _loss(results: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """A weighted mean of all results that have a gradient, and what it is without signs: its rounding is of that."""
    loss, size = torch.zeros(()), torch.zeros(())
    for leaf in results.values():
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad and leaf.is_floating_point():
            weights = torch.linspace(0.5, 1.5, leaf.numel(), dtype=leaf.dtype).view(leaf.shape)
            loss = loss + (leaf * weights).mean()
            size = size + (leaf.detach() * weights).abs().mean()
    if not loss.requires_grad:
        raise ValueError("no result has a gradient")
    return loss, size


def _refereed(model: torch.nn.Module, inputs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What eager gives, and the same in float64."""
    with Referee() as referee:
        found = step(model, model, inputs)
    exact = {
        name: referee.exact(value) if isinstance(value, torch.Tensor) else value
        for name, value in found.items()
    }
    return found, exact


def _differ(
    found: dict[str, Any], expected: dict[str, Any], exact: dict[str, Any], least: dict[str, float]
) -> list[Difference]:
    """The values that are farther from float64 than they may be, and than ``least``."""
    if found.keys() != expected.keys():
        names = sorted(found.keys() ^ expected.keys())[:3]
        return [Difference("parts", f"not in both: {names}", float("inf"), float("inf"), 0.0)]
    differing = [
        difference(name, value, exact[name], found[name], BOUNDS) for name, value in expected.items()
    ]
    return [
        item for item in differing if item is not None and item.compiled_error > least.get(item.what, 0.0)
    ]


def _worst(
    found: dict[str, Any], expected: dict[str, Any], exact: dict[str, Any], least: dict[str, float]
) -> float:
    """The largest distance from float64 in eager's, of values whose distance is more than rounding."""
    ratios = [0.0]
    for name, value in expected.items():
        mine, eagers = distance(found.get(name), exact[name]), distance(value, exact[name])
        if mine and isinstance(value, torch.Tensor) and value.is_floating_point():
            rounding = torch.finfo(value.dtype).eps * float(exact[name].abs().max())
            if mine > max(BOUNDS.roundings * rounding, least.get(name, 0.0)):
                ratios.append(mine / eagers if eagers else float("inf"))
    return round(max(ratios), 2)


def _distances(model: torch.nn.Module, inputs: dict[str, Any], seed: int) -> dict[str, float]:
    """How far from float64 eager is with parameters that differ in their last places."""
    state = copy.deepcopy(model.state_dict())
    generator = torch.Generator().manual_seed(seed)
    try:
        with torch.no_grad():
            for parameter in model.parameters():
                nudge_(parameter, generator)
        found, exact = _refereed(model, inputs)
    finally:
        with torch.no_grad():
            model.load_state_dict(state)
    return {name: distance(value, exact[name]) for name, value in found.items()}


def _roundings(model: torch.nn.Module, expected: dict[str, Any], exact: dict[str, Any]) -> dict[str, float]:
    """How far a value may be in any case, where it is what is left of larger numbers that cancel out.

    Gradients: one rounding of the model's largest gradient, as that of a bias before a softmax. A running mean: one
    rounding of the numbers that it is the mean of, whose size the variance beside it tells.
    """
    gradients = {name: x for name, x in expected.items() if name.startswith("gradient") and x is not None}
    sizes = [float(x.abs().max()) * torch.finfo(x.dtype).eps for x in gradients.values() if x.numel()]
    found = dict.fromkeys(gradients, max(sizes, default=0.0))
    for name, module in model.named_modules():
        before, momentum = getattr(module, "running_var", None), getattr(module, "momentum", None)
        after = exact.get(f"buffer {name}.running_var")
        if isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor) and momentum:
            variance = (after - (1 - momentum) * before.double()) / momentum
            size = float(variance.max().clamp(min=0).sqrt())
            found[f"buffer {name}.running_mean"] = momentum * size * torch.finfo(before.dtype).eps
    return found


def _seed() -> None:
    torch.manual_seed(3)
    random.seed(3)
    try:
        import numpy
    except ImportError:
        return
    numpy.random.seed(3)
