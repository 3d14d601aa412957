"""A trial: one run of a callable from a fixed state, its results, and the gradients of everything it can train."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack.verification.compare import Difference, difference
from fxstack.verification.referee import Referee


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a trial gave: ``values`` by name, results first, then gradients."""

    values: tuple[tuple[str, Any], ...]


def run_trial(call: Callable[[], Any], leaves: Sequence[tuple[str, Tensor]], seed: int) -> Outcome:
    """Results of ``call`` and gradients of its differentiable results to the ``leaves``, under fixed random numbers.

    The cotangents are the same for every trial with results of the same sizes.
    """
    torch.manual_seed(seed)
    results = call()
    named = [(f"result {_place(path)}".rstrip(), leaf) for path, leaf in _leaves(results)]
    named += _gradients([leaf for _, leaf in named], leaves, seed)
    return Outcome(tuple(named))


def _gradients(
    results: Sequence[Any], leaves: Sequence[tuple[str, Tensor]], seed: int
) -> list[tuple[str, Any]]:
    roots = [result for result in results if isinstance(result, Tensor) and result.requires_grad]
    if not roots or not leaves or not torch.is_grad_enabled():
        return []
    generator = torch.Generator().manual_seed(seed)
    cotangents = [
        torch.randn(root.shape, generator=generator, dtype=torch.float64).to(root.device, root.dtype)
        for root in roots
    ]
    tensors = [leaf for _, leaf in leaves]
    found = torch.autograd.grad(roots, tensors, cotangents, allow_unused=True)
    return [(f"gradient of {name}", grad) for (name, _), grad in zip(leaves, found, strict=True)]


def compare_trials(
    make: Callable[[], tuple[Callable[[], Any], Sequence[tuple[str, Tensor]]]],
    make_compiled: Callable[[], tuple[Callable[[], Any], Sequence[tuple[str, Tensor]]]],
    seed: int,
) -> tuple[list[Difference], Referee]:
    """What differs between two trials; each ``make`` sets the state up and gives the call and the leaves."""
    call, leaves = make()
    with Referee() as referee:
        eager = run_trial(call, leaves, seed)
    exact = [
        referee.exact(value).clone() if isinstance(value, Tensor) else value for _, value in eager.values
    ]
    expected = [(name, _copied(value)) for name, value in eager.values]
    call, leaves = make_compiled()
    compiled = run_trial(call, leaves, seed)
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


@contextmanager
def restored(tensors: Sequence[Tensor]) -> Iterator[Callable[[], None]]:
    """Gives a function that puts the tensors' contents back to what they are now; called at the end too. The random
    state is put back at the end."""
    before = [(tensor, tensor.detach().clone()) for tensor in tensors]

    def restore() -> None:
        with torch.no_grad():
            for tensor, content in before:
                if not torch.equal(tensor, content):
                    tensor.copy_(content)

    with torch.random.fork_rng(devices=[]):
        try:
            yield restore
        finally:
            restore()


def _leaves(results: Any) -> list[tuple[Any, Any]]:
    flat, _ = pytree.tree_flatten_with_path(results)
    return list(flat)


def _place(path: Any) -> str:
    return "".join(str(step) for step in path)
