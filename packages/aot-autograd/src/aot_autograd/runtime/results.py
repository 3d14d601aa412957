"""Making the program's results: views made again from real inputs and bases, duplicates, constants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from types import MappingProxyType
from typing import Any, Protocol

import torch

from aot_autograd.plan import (
    AsInference,
    Constant,
    FromGraph,
    FromInput,
    FromResult,
    JointPlan,
    Recipe,
    Replay,
    SameAs,
    ViewOf,
)
from fx_interface.symbols import Expr, Symbol, evaluate

_NOTHING: Mapping[int, Any] = MappingProxyType({})
_AS_IT_IS = nullcontext()
_set_versions = torch._C._autograd._unsafe_set_version_counter


class Maker(Protocol):
    """Makes the program's results of the inputs and the forward graph's results; ``made``: those that are there."""

    def __call__(
        self, inputs: Sequence[Any], results: Sequence[Any], made: Mapping[int, Any] = _NOTHING
    ) -> tuple[Any, ...]: ...


class ViewMaker(Protocol):
    """Makes the program's result ``position``, a view. What has been made is in ``made``, and what is made is added."""

    def __call__(
        self, position: int, inputs: Sequence[Any], results: Sequence[Any], made: dict[int, Any]
    ) -> Any: ...


def result_maker(plan: JointPlan) -> Maker | None:
    """What turns graph results into the program's; None where they are the same."""
    recipes = plan.recipes
    if all(recipe == FromGraph(index) for index, recipe in enumerate(recipes)):
        return None
    sizes_of, operators = _needed(recipes, plan)
    order = _order(recipes)
    in_order = order == list(range(len(recipes)))
    any_apart = any(isinstance(recipe, ViewOf) and recipe.counts_apart for recipe in recipes)

    def make(
        inputs: Sequence[Any], results: Sequence[Any], made: Mapping[int, Any] = _NOTHING
    ) -> tuple[Any, ...]:
        sizes = sizes_of(inputs, results)
        found: dict[int, Any] = dict(made)
        apart: dict[int, Any] | None = {} if any_apart else None
        for position in order:
            if position not in found:
                found[position] = _make(recipes[position], inputs, results, found, sizes, operators, apart)
        return (
            tuple(found.values()) if in_order and not made else tuple([found[n] for n in range(len(found))])
        )

    return make


def view_maker(plan: JointPlan) -> ViewMaker:
    """What makes single results of the program that are views, and those that they are views of."""
    recipes = plan.recipes
    sizes_of, operators = _needed(recipes, plan)

    def make(position: int, inputs: Sequence[Any], results: Sequence[Any], made: dict[int, Any]) -> Any:
        for n in [*_views_under(recipes, position), position]:
            if n not in made:
                sizes = sizes_of(inputs, results)
                made[n] = _make(recipes[n], inputs, results, made, sizes, operators)
        return made[position]

    return make


def _views_under(recipes: Sequence[Recipe], position: int) -> list[int]:
    """The results that result ``position`` is made of, view by view, from the first one on."""
    found: list[int] = []
    recipe = recipes[position]
    while isinstance(recipe, ViewOf) and isinstance(recipe.base, FromResult):
        found.insert(0, recipe.base.index)
        recipe = recipes[recipe.base.index]
    return found


def _order(recipes: Sequence[Recipe]) -> list[int]:
    """The positions of all results, each behind those that it is made of."""
    found: dict[int, None] = {}
    for position in range(len(recipes)):
        found.update(dict.fromkeys([*_views_under(recipes, position), position]))
    return list(found)


def _needed(
    recipes: Sequence[Recipe], plan: JointPlan
) -> tuple[Callable[[Sequence[Any], Sequence[Any]], dict[Symbol, int]], Mapping[str, Callable[..., Any]]]:
    """What the views among the results need: a function that gives symbolic sizes their values, and operators."""
    views = [r for r in map(_plain, recipes) if isinstance(r, ViewOf)]
    dynamic = any(is_dynamic(view.steps) for view in views)
    positions = [(Symbol(name), position) for name, position in plan.symbols] if dynamic else []
    born = [(Symbol(name), index) for name, index in plan.born if index < plan.returned] if dynamic else []

    def sizes_of(inputs: Sequence[Any], results: Sequence[Any]) -> dict[Symbol, int]:
        sizes = {atom: inputs[position] for atom, position in positions}
        sizes.update((atom, results[index]) for atom, index in born)
        return sizes

    return sizes_of, {step.op: operator_named(step.op) for view in views for step in view.steps}


def _plain(recipe: Recipe) -> Recipe:
    return recipe.made if isinstance(recipe, AsInference) else recipe


def _make(
    recipe: Recipe | FromResult,
    inputs: Sequence[Any],
    results: Sequence[Any],
    made: Mapping[int, Any],
    sizes: Mapping[Symbol, int],
    operators: Mapping[str, Callable[..., Any]],
    apart: dict[int, Any] | None = None,
) -> Any:
    """``apart``: by the number of a counter, the base of the views that have it."""
    match recipe:
        case FromGraph(index):
            return results[index]
        case FromInput(index):
            return inputs[index]
        case SameAs(index) | FromResult(index):
            return made[index]
        case Constant(value):
            return value
        case AsInference(plain):
            return _as_inference(_make(plain, inputs, results, made, sizes, operators, apart))
        case ViewOf(base, steps, is_older, counts_apart):
            value = _make(base, inputs, results, made, sizes, operators)
            if counts_apart:
                apart = {} if apart is None else apart
                value = (
                    apart[counts_apart]
                    if counts_apart in apart
                    else apart.setdefault(counts_apart, value.data)
                )
            with _one_write_ago(value) if is_older and not value.is_inference() else _AS_IT_IS:
                for step in steps:
                    value = replay(value, step, sizes, operators[step.op])
            return value


@contextmanager
def _one_write_ago(base: torch.Tensor) -> Iterator[None]:
    """Views that are made of ``base`` here are older, for autograd, than its last write."""
    version = base._version
    _set_versions((base,), (max(version - 1, 0),))
    try:
        yield
    finally:
        _set_versions((base,), (version,))


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
