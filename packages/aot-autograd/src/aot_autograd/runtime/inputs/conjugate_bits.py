"""Inputs that are marked as conjugated or negated: a graph is given what they stand for, in the same layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from aot_autograd.plan import FromInput, JointPlan, ViewOf
from fx_interface.backend import CompiledGraph
from fx_interface.errors import UnsupportedProgramError


def is_marked(value: Any) -> bool:
    """Whether the content of a tensor is not what is in its memory."""
    return (
        isinstance(value, torch.Tensor)
        and value.layout is torch.strided
        and (value.is_conj() or value.is_neg())
    )


def without_mark(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same sizes and strides whose memory holds the content.

    Autograd follows it also where gradients are off: the program may turn them on by itself.
    """
    if any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True)):
        raise UnsupportedProgramError("AOT102", "an input is marked as conjugated and repeats its elements")
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    with torch.enable_grad():
        return made.copy_(tensor)


def check_marked(plan: JointPlan) -> None:
    """AOT102 if the program writes to a marked input or returns it: its memory does not hold its content."""
    used = {m.input_index for m in plan.mutated} | {form.input_index for form in plan.forms}
    for recipe in plan.recipes:
        base = recipe.base if isinstance(recipe, ViewOf) else recipe
        if isinstance(base, FromInput):
            used.add(base.index)
    if used & set(plan.marked):
        raise UnsupportedProgramError(
            "AOT102", "an input that is marked as conjugated or negated is written or returned"
        )


def unmarking(plan: JointPlan, run: CompiledGraph) -> CompiledGraph:
    """``run``, given copies of the inputs ``plan.marked``."""
    marked = plan.marked

    def run_without_marks(*inputs: Any) -> Sequence[Any]:
        given = list(inputs)
        for index in marked:
            given[index] = without_mark(given[index])
        results: Sequence[Any] = run(*given)
        return results

    return run_without_marks
