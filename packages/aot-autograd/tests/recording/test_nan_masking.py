"""Results without a gradient add nothing to the others' gradients, not even where their derivatives are infinite."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from aot_autograd.pipeline import trace
from fx_interface.signature import InputDecl, InputKind
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import spec_of


def several(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.sqrt().sum(), (x * 2).sum(), x.log().sum(), (x.sqrt() * x).sum()


@pytest.mark.parametrize("place", range(4))
def test_infinite_derivatives_of_other_results(compiled: Any, place: int) -> None:
    found = []
    for run in (several, compiled(several)):
        x = torch.tensor([0.0, 1.0, 4.0], requires_grad=True)
        results = run(x)
        results[place].backward(retain_graph=True)
        first = x.grad
        x.grad = None
        (results[place] + results[1]).backward()
        found.append((first, x.grad))
    torch.testing.assert_close(found[1], found[0], equal_nan=True, rtol=0, atol=0)


def _nan_from_zeros(program: Any, library: Any, *inputs: torch.Tensor) -> tuple[tuple[int, ...], ...]:
    declared = [InputDecl(f"x{i}", InputKind.USER, spec_of(t)) for i, t in enumerate(inputs)]
    traced = trace(
        lambda _, given: list(program(*given)), declared, inputs, operators=library, env=ShapeEnv()
    )
    assert traced.plan.backward is not None
    return traced.plan.backward.nan_from_zeros


def test_which_results_may_do_so(library: Any) -> None:
    x, w = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2, requires_grad=True)
    assert _nan_from_zeros(several, library, x) == ((0,), (2,), (3,))
    assert _nan_from_zeros(lambda x: (x.sqrt(),), library, x) == ()

    def loss_and_logits(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
        logits = x @ w
        return logits.exp().sum(), logits

    assert _nan_from_zeros(loss_and_logits, library, x, w) == ((0,),)
