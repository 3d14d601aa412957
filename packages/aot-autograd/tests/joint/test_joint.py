"""What the recording of forward and backward learns of the program's own use of autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

Program = Callable[..., tuple[torch.Tensor, ...]]


def differentiated(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    loss = (x * w).pow(2).sum()
    (gradient,) = torch.autograd.grad(loss, w)
    return loss, gradient


def in_part(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    hidden = x * w
    loss = hidden.pow(2).sum()
    (gradient,) = torch.autograd.grad(loss, hidden)
    return loss, gradient, hidden, hidden.sum() + 1


def keeping(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    loss = (x * w).pow(2).sum()
    (gradient,) = torch.autograd.grad(loss, w, retain_graph=True)
    return loss, gradient


def without_saved(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = x + w
    (gradient,) = torch.autograd.grad(y.sum(), w)
    return y, gradient


def outcome(program: Program, place: int) -> Any:
    """The results, and the gradient of one of them; None where it cannot be had any more."""
    x, w = torch.arange(3.0), torch.ones(3, requires_grad=True)
    results = program(x, w)
    try:
        torch.autograd.backward(results[place].sum())
    except RuntimeError as error:
        if "second time" not in str(error):
            raise
    return [result.detach() for result in results], w.grad


@pytest.mark.parametrize(
    ("program", "place", "raises"),
    [
        (differentiated, 0, True),
        (in_part, 0, True),
        (in_part, 2, False),
        (in_part, 3, False),
        (keeping, 0, False),
        (without_saved, 0, False),
    ],
)
def test_a_result_that_the_program_has_differentiated(
    compiled: Any, program: Program, place: int, raises: bool
) -> None:
    (expected, gradient), (found, own) = outcome(program, place), outcome(compiled(program), place)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert (gradient is None) is (own is None) is raises
    if not raises:
        torch.testing.assert_close(own, gradient, rtol=0, atol=0)
