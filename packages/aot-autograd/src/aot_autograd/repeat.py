"""Whether, and how, a traced program can be run again from its inputs, for derivatives of its derivatives."""

from __future__ import annotations

from typing import Any

import torch

from aot_autograd.graphs import live_values, random_calls
from aot_autograd.joint import Joint
from aot_autograd.plan import FromGraph, Repeat, ViewOf
from aot_autograd.record import Value


def repeat_of(joint: Joint) -> Repeat:
    """The conditions of running ``joint``'s program again; called under the autocast that the program runs under."""
    draws = random_calls(joint.trace.recorder.values, backward=False)
    return Repeat(_why_not(joint, draws), bool(draws), _autocast())


def _why_not(joint: Joint, draws: list[Value]) -> str:
    if joint.training and not torch.is_grad_enabled():
        return "it turns gradients on by itself"
    if draws and joint.decomposed:
        return "its random numbers are not torch's"
    if any(isinstance(arg, torch.Generator) for value in draws for arg in value.kwargs.values()):
        return "it draws from a generator of its own"
    if any(m.differentiable for m in joint.mutated):
        return "it writes to its inputs"
    if joint.forms:
        return "it changes the shape of an input in place"
    if _reads_what_it_writes(joint):
        return "its results depend on an input that it writes to"
    recipes = joint.results.recipes
    made = {recipe.index for recipe in recipes if isinstance(recipe, FromGraph)}
    made |= {r.base.index for r in recipes if isinstance(r, ViewOf) and isinstance(r.base, FromGraph)}
    wanted = {i for i, r in enumerate(joint.results.graph) if r.tensor is not None and r.tensor.requires_grad}
    return "" if wanted <= made else "a result is made of others in a way that cannot be undone"


def _reads_what_it_writes(joint: Joint) -> bool:
    """Whether a differentiable result depends on the old content of an input that is overwritten, as its writes do."""
    old = {joint.inputs[m.input_index] for m in joint.mutated} - {None}
    results = [r.value for r in joint.results.graph if r.tensor is not None and r.tensor.requires_grad]
    needed = {value.number for value in live_values(results, {})}
    return any(value is not None and value.number in needed for value in old)


def _autocast() -> tuple[tuple[str, Any], ...]:
    """The devices that autocast is on for, with their dtypes."""
    return tuple(
        (device, torch.get_autocast_dtype(device))
        for device in ("cpu", "cuda")
        if torch.is_autocast_enabled(device)
    )
