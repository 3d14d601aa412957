"""What requires grad after a part has run."""

from __future__ import annotations

from collections.abc import Sequence

from aot_autograd.plan import (
    AsInference,
    Constant,
    FromGraph,
    FromInput,
    FromResult,
    JointPlan,
    Recipe,
    SameAs,
    ViewOf,
)
from fx_interface.python_runtime.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class After:
    """For each input and each result of a part, whether it requires grad then."""

    inputs: list[bool]
    results: list[bool]


def requires_grad_after(plan: JointPlan, inputs: Sequence[bool]) -> After:
    """What the plan says, given which inputs require grad before."""
    after = list(inputs)
    for written in plan.mutated:
        after[written.input_index] = after[written.input_index] or written.differentiable
    results: list[bool] = []
    differentiable = set(plan.differentiable) if plan.backward is not None else set()

    def flag(recipe: Recipe) -> bool:
        match recipe:
            case FromGraph(index):
                return index in differentiable
            case FromInput(index):
                return after[index]
            case SameAs(index):
                return results[index]
            case Constant():
                return False
            case AsInference():
                return False
            case ViewOf(base, steps):
                seen: Recipe = plan.recipes[base.index] if isinstance(base, FromResult) else base
                return flag(seen) and not any(step.no_grad for step in steps)

    for recipe in plan.recipes:
        results.append(flag(recipe))
    return After(after, results)
