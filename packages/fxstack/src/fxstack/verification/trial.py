"""A trial: one run of a callable from a fixed state, its results, the gradients of everything it can train, and what it
wrote."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack.verification.compare import Difference, difference
from fxstack.verification.referee import Referee


@dataclass(frozen=True, slots=True)
class Trial:
    """A call to be made, the ``leaves`` that gradients are for, and the tensors that it may write to, by name."""

    call: Callable[[], Any]
    leaves: Sequence[tuple[str, Tensor]]
    written: Sequence[tuple[str, Tensor]] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a trial gave: ``values`` by name, results first, then gradients of these, then what it wrote.
    ``differentiable``: whether gradients could be asked for, which a call that ran a backward itself leaves nothing
    for."""

    values: tuple[tuple[str, Any], ...]
    differentiable: bool


def run_trial(trial: Trial, seed: int, differentiable: bool = True) -> Outcome:
    """Results of a call, gradients of its differentiable results to the leaves, and what it wrote, under fixed random
    numbers.

    The cotangents are the same for every trial with results of the same sizes. ``differentiable``: whether to ask for
    gradients.
    """
    torch.manual_seed(seed)
    results = trial.call()
    named = [(f"result {_place(path)}".rstrip(), leaf) for path, leaf in _leaves(results)]
    gradients = _gradients([leaf for _, leaf in named], trial.leaves, seed) if differentiable else None
    written = _written(trial.written)
    return Outcome((*named, *(gradients or ()), *written), gradients is not None)


def _gradients(
    results: Sequence[Any], leaves: Sequence[tuple[str, Tensor]], seed: int
) -> list[tuple[str, Any]] | None:
    """Gradients by name; None where the call has used up the graph itself, or has written to what the graph saved: what
    came of that is in ``.grad`` and in what it wrote."""
    roots = [result for result in results if isinstance(result, Tensor) and result.requires_grad]
    if not roots or not leaves or not torch.is_grad_enabled():
        return []
    generator = torch.Generator().manual_seed(seed)
    cotangents = [
        torch.randn(root.shape, generator=generator, dtype=torch.float64).to(root.device, root.dtype)
        for root in roots
    ]
    tensors = [leaf for _, leaf in leaves]
    try:
        found = torch.autograd.grad(roots, tensors, cotangents, allow_unused=True)
    except RuntimeError as error:
        if any(words in str(error) for words in _GRAPH_IS_USED):
            return None
        raise
    return [(f"gradient of {name}", grad) for (name, _), grad in zip(leaves, found, strict=True)]


_GRAPH_IS_USED = ("backward through the graph a second time", "modified by an inplace operation")
"""Parts of what autograd says of a graph that a training step has run through, and of one whose leaves it updated."""


def _written(tensors: Sequence[tuple[str, Tensor]]) -> list[tuple[str, Any]]:
    """Contents, and gradients that are kept, of tensors of the usual kind."""
    usual = [(name, t) for name, t in tensors if t.layout is torch.strided and not t.is_quantized]
    contents: list[tuple[str, Any]] = [(f"content of {name} after the call", t) for name, t in usual]
    return contents + [(f".grad of {name} after the call", t.grad) for name, t in usual if t.is_leaf]


def compare_trials(
    make: Callable[[], Trial], make_compiled: Callable[[], Trial], seed: int
) -> tuple[list[Difference], Referee]:
    """What differs between two trials; each ``make`` sets the state up."""
    trial = make()
    with Referee() as referee:
        eager = run_trial(trial, seed)
    exact = [
        referee.exact(value).clone() if isinstance(value, Tensor) else value for _, value in eager.values
    ]
    expected = [(name, _copied(value)) for name, value in eager.values]
    compiled = run_trial(make_compiled(), seed, eager.differentiable)
    if [name for name, _ in expected] != [name for name, _ in compiled.values]:
        names = [name for name, _ in compiled.values]
        why = f"{names} instead of {[name for name, _ in expected]}"
        return [Difference("the results' structure", why, float("inf"), float("inf"), 0.0)], referee
    found = [
        difference(name, value, truth, other)
        for (name, value), truth, (_, other) in zip(expected, exact, compiled.values, strict=True)
    ]
    return [item for item in found if item is not None], referee


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else value


def snapshot(values: Sequence[Any]) -> list[Any]:
    """Copies of ``values`` as leaves that require grad where they do, sharing memory where they share it."""
    memo: dict[int, Any] = {}
    bare = [value.detach() if isinstance(value, Tensor) else value for value in values]
    copies = [copy.deepcopy(value, memo) if isinstance(value, Tensor) else value for value in bare]
    return [
        made.requires_grad_(value.requires_grad) if isinstance(value, Tensor) else made
        for value, made in zip(values, copies, strict=True)
    ]


def _leaves(results: Any) -> list[tuple[Any, Any]]:
    flat, _ = pytree.tree_flatten_with_path(results)
    return list(flat)


def _place(path: Any) -> str:
    return "".join(str(step) for step in path)
