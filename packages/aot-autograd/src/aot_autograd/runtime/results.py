"""Making the program's results: views made again from real inputs and bases, duplicates, constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch

from aot_autograd.plan import (
    AsInference,
    Constant,
    FromGraph,
    FromInput,
    JointPlan,
    Recipe,
    Replay,
    SameAs,
    ViewOf,
)
from fx_interface.symbols import Expr, Symbol, evaluate

Maker: TypeAlias = Callable[[Sequence[Any], Sequence[Any]], tuple[Any, ...]]
"""Called with the inputs and the forward graph's results, returns the program's results."""


def result_maker(plan: JointPlan) -> Maker | None:
    """What turns graph results into the program's; None where they are the same."""
    recipes = plan.recipes
    if all(recipe == FromGraph(index) for index, recipe in enumerate(recipes)):
        return None
    views = [r for r in map(_plain, recipes) if isinstance(r, ViewOf)]
    dynamic = any(is_dynamic(view.steps) for view in views)
    positions = [(Symbol(name), position) for name, position in plan.symbols] if dynamic else []
    born = [(Symbol(name), index) for name, index in plan.born if index < plan.returned] if dynamic else []
    operators = {step.op: operator_named(step.op) for view in views for step in view.steps}

    def make(inputs: Sequence[Any], results: Sequence[Any]) -> tuple[Any, ...]:
        sizes = {atom: inputs[position] for atom, position in positions}
        sizes.update((atom, results[index]) for atom, index in born)
        made: list[Any] = []
        for recipe in recipes:
            made.append(_make(recipe, inputs, results, made, sizes, operators))
        return tuple(made)

    return make


def _plain(recipe: Recipe) -> Recipe:
    return recipe.made if isinstance(recipe, AsInference) else recipe


def _make(
    recipe: Recipe,
    inputs: Sequence[Any],
    results: Sequence[Any],
    made: Sequence[Any],
    sizes: Mapping[Symbol, int],
    operators: Mapping[str, Callable[..., Any]],
) -> Any:
    match recipe:
        case FromGraph(index):
            return results[index]
        case FromInput(index):
            return inputs[index]
        case SameAs(index):
            return made[index]
        case Constant(value):
            return value
        case AsInference(plain):
            return _as_inference(_make(plain, inputs, results, made, sizes, operators))
        case ViewOf(base, steps):
            value = results[base.index] if isinstance(base, FromGraph) else inputs[base.index]
            for step in steps:
                value = replay(value, step, sizes, operators[step.op])
            return value


def _as_inference(value: torch.Tensor) -> torch.Tensor:
    """A tensor made in inference mode in the memory of ``value``, which nobody else holds."""
    with torch.inference_mode():
        return torch.empty(0, dtype=value.dtype, device=value.device).set_(value.detach())  # type: ignore[call-overload,no-any-return]


def replay(value: Any, step: Replay, sizes: Mapping[Symbol, int], operator: Callable[..., Any]) -> Any:
    """The step on a real tensor; ``sizes`` gives the symbols in its arguments."""
    args = [_concrete(arg, sizes) for arg in step.args]
    kwargs = {name: _concrete(arg, sizes) for name, arg in step.kwargs}
    if step.no_grad and torch.is_grad_enabled():
        with torch.no_grad():
            made = operator(value, *args, **kwargs)
    else:
        made = operator(value, *args, **kwargs)
    return made if step.index is None else made[step.index]


def _concrete(arg: Any, sizes: Mapping[Symbol, int]) -> Any:
    if isinstance(arg, Expr):
        return evaluate(arg, sizes)
    if isinstance(arg, (list, tuple)):
        return [_concrete(part, sizes) for part in arg]
    return arg


def is_dynamic(steps: Sequence[Replay]) -> bool:
    """Whether a step has a size that is only known at run time."""
    pending: list[Any] = [part for step in steps for part in (step.args, [v for _, v in step.kwargs])]
    while pending:
        item = pending.pop()
        if isinstance(item, Expr):
            return True
        if isinstance(item, (list, tuple)):
            pending.extend(item)
    return False


def operator_named(name: str) -> Callable[..., Any]:
    """The operator of a step."""
    namespace, rest = name.split("::")
    packet, _, overload = rest.partition(".")
    found: Callable[..., Any] = getattr(getattr(getattr(torch.ops, namespace), packet), overload or "default")
    return found
