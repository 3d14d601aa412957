"""Whether, and how, a traced program can be run again from its inputs, for derivatives of its derivatives."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Final

import torch

from aot_autograd.joint.joint import Joint
from aot_autograd.plan import FromGraph, Repeat, ViewOf
from aot_autograd.recording.graphs import random_calls
from aot_autograd.recording.values import Value


def repeat_of(joint: Joint) -> Repeat:
    """The conditions of running ``joint``'s program again; called under the autocast that the program runs under."""
    draws = random_calls(joint.trace.recorder.values, backward=False)
    return Repeat(_why_not(joint, draws), bool(draws), _autocast(), _read_and_written(joint), _settled(joint))


def _why_not(joint: Joint, draws: list[Value]) -> str:
    if draws and joint.own_random:
        return "its random numbers are not torch's"
    if any(isinstance(arg, torch.Generator) for value in draws for arg in value.kwargs.values()):
        return "it draws from a generator of its own"
    recipes = joint.results.recipes
    made = {recipe.index for recipe in recipes if isinstance(recipe, FromGraph)}
    made |= {r.base.index for r in recipes if isinstance(r, ViewOf) and isinstance(r.base, FromGraph)}
    wanted = set(_differentiable(joint))
    return "" if wanted <= made else "a result is made of others in a way that cannot be undone"


def _differentiable(joint: Joint) -> dict[int, Any]:
    """The values of the results that require grad, by number, without what is only written to inputs."""
    return {
        index: result.value
        for index, result in enumerate(joint.results.graph[: joint.user_results])
        if result.tensor is not None and result.tensor.requires_grad
    }


def _read_and_written(joint: Joint) -> tuple[int, ...]:
    """The inputs that are overwritten and on whose old content a result depends that may still be differentiated, or
    what is written to an input that autograd follows."""
    followed = [joint.results.graph[m.graph_index].value for m in joint.mutated if m.differentiable]
    open_to_backwards = [v for index, v in _differentiable(joint).items() if index not in joint.released]
    needed = _depended_on([*open_to_backwards, *followed])
    old = ((m.input_index, joint.inputs[m.input_index]) for m in joint.mutated)
    return tuple(index for index, value in old if value is not None and value.number in needed)


aten = torch.ops.aten
_STATISTICS: Final = frozenset({3, 4})
"""The places of the running mean and variance among the arguments of a batch norm."""
_RESULTS_WITHOUT: Final = {
    aten._native_batch_norm_legit_functional.default: 3,
    aten._batch_norm_with_update_functional.default: 4,
}
"""Batch norms, and how many of their results do not depend on the running statistics in training."""


def _settled(joint: Joint) -> tuple[int, ...]:
    """The inputs of which nothing is read but by ``relu_``: it changes nothing the second time, and its derivative
    reads the result."""
    found = []
    formed = {form.input_index for form in joint.forms}
    for mutated in joint.mutated:
        old, new = joint.inputs[mutated.input_index], joint.results.graph[mutated.graph_index].value
        if old is None or mutated.input_index in formed or not isinstance(new, Value):
            continue
        if new.op is aten.relu.default and new.args[0] is old and new.spec == old.spec:
            readers = (v for v in joint.trace.recorder.values if v is not new and old in _flat(v))
            if next(readers, None) is None and all(r.value is not old for r in joint.results.graph):
                found.append(mutated.input_index)
    return tuple(found)


def _flat(value: Value) -> list[Value]:
    """The values that a call reads."""
    found: list[Value] = []
    pending: list[Any] = [*value.args, *value.kwargs.values()]
    while pending:
        item = pending.pop()
        if isinstance(item, (list, tuple)):
            pending.extend(item)
        elif isinstance(item, Value):
            found.append(item)
    return found


def _depended_on(results: Sequence[Any]) -> set[int]:
    """The numbers of the values that ``results`` are computed from."""
    found: set[int] = set()
    pending: list[Any] = list(results)
    while pending:
        item = pending.pop()
        if isinstance(item, (list, tuple)):
            pending.extend(item)
        elif isinstance(item, Value) and item.number not in found:
            found.add(item.number)
            pending.extend(_operands(item))
            pending.extend(item.kwargs.values())
    return found


def _operands(value: Value) -> Sequence[Any]:
    """The arguments of ``value``; of one result of a batch norm those which that result depends on."""
    if value.op is operator.getitem:
        source, index = value.args
        if index < _RESULTS_WITHOUT.get(source.op, 0) and _is_training(source):
            return [arg for place, arg in enumerate(source.args) if place not in _STATISTICS]
    return value.args


def _is_training(norm: Value) -> bool:
    return norm.op is aten._batch_norm_with_update_functional.default or norm.args[5] is True


def _autocast() -> tuple[tuple[str, Any], ...]:
    """The devices that autocast is on for, with their dtypes."""
    return tuple(
        (device, torch.get_autocast_dtype(device))
        for device in ("cpu", "cuda")
        if torch.is_autocast_enabled(device)
    )
