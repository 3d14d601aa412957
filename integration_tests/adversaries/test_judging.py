"""The referee lets pass what roundings explain, and nothing else."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from judging import Comparing, Judge

from fx_interface.conformance.outcomes import observe

NUMBERS = [1.0, 1e-7, 3.0, -1.0, 0.1, 7.0]
JUDGE = Judge.of(Comparing({}, {"inductor": (1e-6, 0.0)}, referee=True), "inductor")


def _differences(one, two):
    def outcomes(function):
        return [observe(function, torch.tensor(NUMBERS))]

    return JUDGE.differences(0, outcomes(one), outcomes(two), lambda number: [outcomes(one)])


def _cancelling(x):
    return (x * 1000.1).sum() - 1000.1 * x.sum() + x


def _second(x, order):
    """Zeros without memory are among what a second derivative computes."""
    x = x.requires_grad_()
    (first,) = torch.autograd.grad((x.abs() / x * 1000.1).sum() + (x**2).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad((first**2).sum(), x)
    return second + torch.tensor([order * 1e-4, 0.0, 0.0, 0.0, 0.0, 0.0])


CASES = {
    "a second derivative": (partial(_second, order=0), partial(_second, order=1), False),
    "terms in another order": (_cancelling, lambda x: (x * 1000.1 - 1000.1 * x).sum() + x, False),
    "more than roundings": (_cancelling, lambda x: _cancelling(x) + 0.01, True),
    "well conditioned": (lambda x: x.exp(), lambda x: x.exp() * 1.0001, True),
    "nan": (lambda x: x.log(), lambda x: x.abs().log(), True),
    "a tie": (lambda x: torch.where(x.clamp(max=1) == 1, 1.0, 0.0), lambda x: torch.where(x == 1, 1.0, 0.0), True),
    "a maximum": (
        lambda x: ((powers := x.exp()) >= powers.max()) * 1.0,
        lambda x: ((powers := x.exp()) > powers.max()) * 1.0,
        True,
    ),
    "a tie that rounding decides": (
        lambda x: torch.where(x / 3 * 3 == x, 1.0, 0.0),
        lambda x: torch.where(x * (1 / 3) * 3 == x, 1.0, 0.0),
        False,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("one", "two", "differs"), CASES.values(), ids=CASES.keys())
def test_what_the_referee_says(one, two, differs):
    assert bool(_differences(one, two)) == differs
