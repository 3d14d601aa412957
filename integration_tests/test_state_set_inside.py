"""Torch's state that a compiled function sets holds inside of its graph and after it, under every backend."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import fxstack


def default_dtype(x: Tensor) -> Any:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    made = torch.ones(3) + torch.arange(3) / 2
    torch.set_default_dtype(before)
    return made * x, torch.arange(3) / 2


def floats_of_integers(x: Tensor) -> Any:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    n, mask = torch.arange(3), torch.arange(3) > 0
    made = [n / 2, n + 1.5, n.sin(), n**0.5, n * 1j, mask * 2.5, torch.div(3, n + 1), n.sigmoid().sum()]
    torch.set_default_dtype(before)
    return x.exp(), made


def saved_tensors_hooks_refused(x: Tensor) -> Any:
    with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
        y = x * x
    return y.exp(), torch._C._autograd._saved_tensors_hooks_get_disabled_error_message()


def forward_gradients_off(x: Tensor) -> Any:
    with torch.autograd.forward_ad._set_fwd_grad_enabled(False):
        y = x * x
    return y.exp(), torch._C._is_fwd_grad_enabled()


PROGRAMS = (default_dtype, floats_of_integers, saved_tensors_hooks_refused, forward_gradients_off)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_state_set_inside(program: Any, backend: str) -> None:
    fast = fxstack.compile(program, backend=backend, fullgraph=True)
    outcomes = []
    for run in (program, fast, fast):
        x = torch.linspace(0, 1, 3, requires_grad=True)
        result, other = run(x)
        result.sum().backward()
        outcomes.append((result.detach(), other, x.grad))
    for outcome in outcomes[1:]:
        for found, expected in zip(outcome, outcomes[0], strict=True):
            if isinstance(expected, (Tensor, list)):
                torch.testing.assert_close(found, expected)
            else:
                assert found == expected


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_mask_does_not_become_floats(backend: str) -> None:
    def program(mask: Tensor) -> Tensor:
        torch.set_default_dtype(torch.float64)
        made = torch.where(mask, 1.5, 2.5)
        torch.set_default_dtype(torch.float32)
        return made

    mask = torch.tensor([True, False])
    torch.testing.assert_close(fxstack.compile(program, backend=backend)(mask), program(mask))
