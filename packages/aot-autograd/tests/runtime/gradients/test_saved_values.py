"""Backwards after each other of some results for some inputs: refused where eager refuses them."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from aot_autograd import aot_function

Step = Callable[[Sequence[torch.Tensor], Sequence[torch.Tensor]], Any]


def chosen(result: int, *inputs: int, retain: bool = False) -> Step:
    def step(results: Sequence[torch.Tensor], given: Sequence[torch.Tensor]) -> Any:
        wanted = [given[i] if i >= 0 else results[-1 - i] for i in inputs]
        return torch.autograd.grad(results[result].sum(), wanted, retain_graph=retain, allow_unused=True)

    return step


def of(*results: int, retain: bool = False) -> Step:
    def step(found: Sequence[torch.Tensor], given: Sequence[torch.Tensor]) -> Any:
        for leaf in given:
            leaf.grad = None
        sum(found[i].sum() for i in results).backward(retain_graph=retain)  # type: ignore[union-attr]
        return [leaf.grad for leaf in given]

    return step


def outcomes(function: Any, steps: Sequence[Step]) -> list[Any]:
    torch.manual_seed(0)
    given = [torch.rand(2, 2, requires_grad=True) for _ in range(3)]
    results = function(*given)
    found: list[Any] = []
    for step in steps:
        try:
            found.append([None if g is None else g.clone() for g in step(results, given)])
        except RuntimeError as error:
            found.append("refused" if "second time" in str(error) else str(error))
    return found


def independent(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> Any:
    return (x.sin() + y.sin() + w,)


def joined(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> Any:
    return ((x * y).tanh() + w,)


def linked(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> Any:
    logits = x @ y
    return logits, logits.softmax(-1), logits + w, w / 2


def free_beside_what_divides(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> Any:
    return (x + 1).acosh() + y, 1 / (y.log() + 1)


PROGRAMS = {
    "other inputs": (independent, [chosen(0, 0), chosen(0, 1), chosen(0, 2), chosen(0, 0)]),
    "an input that nothing is saved for, at last": (
        joined,
        [of(0), chosen(0, 2), chosen(0, 2), chosen(0, 1)],
    ),
    "inputs of one product": (joined, [chosen(0, 0), chosen(0, 1)]),
    "kept, then other inputs": (joined, [chosen(0, 0, retain=True), chosen(0, 1), chosen(0, 0)]),
    "inputs that a result does not lead to": (linked, [chosen(3, 0, 1), of(3), of(0), of(3)]),
    "gradients between results": (linked, [chosen(1, -1), chosen(0, 0), chosen(1, -1)]),
    "between results, where nothing is saved": (linked, [of(0), chosen(2, -1), chosen(2, -1), of(2)]),
    "between results and inputs at once": (linked, [chosen(1, -1, 0), chosen(2, -1), chosen(0, 1)]),
    "a way that leads to another input, too": (
        free_beside_what_divides,
        [of(0, 1), chosen(0, 1), chosen(0, 0)],
    ),
}


@pytest.mark.parametrize(("function", "steps"), PROGRAMS.values(), ids=PROGRAMS)
def test_what_is_refused(library: Any, interpreter: Any, function: Any, steps: Any) -> None:
    expected = outcomes(function, steps)
    found = outcomes(aot_function(function, operators=library, forward_compiler=interpreter), steps)
    for one, two in zip(expected, found, strict=True):
        assert (one == "refused") == (two == "refused")
        if one != "refused":
            torch.testing.assert_close(two, one, rtol=0, atol=0)


def test_what_is_saved_is_let_go_of_with_the_last_backward_that_reads_it(
    library: Any, interpreter: Any
) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x * 2).exp().sum() + (y * 3).exp().sum() + (x + y).sum()

    compiled = aot_function(function, operators=library, forward_compiler=interpreter)
    x, y = torch.ones(100, requires_grad=True), torch.ones(100, requires_grad=True)
    loss = compiled(x, y)
    kept = [weakref.ref(tensor) for tensor in loss.grad_fn.kept]
    assert kept
    torch.autograd.grad(loss, x)
    gc.collect()
    assert all(tensor() is not None for tensor in kept), "the other input's gradient reads it"
    torch.autograd.grad(loss, y)
    assert all(tensor() is None for tensor in kept)
