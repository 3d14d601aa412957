"""Inputs that are conjugated or negated without being computed."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fx_interface.errors import UnsupportedProgramError

Z = torch.randn(3, 4, dtype=torch.complex128)


def _conjugated() -> torch.Tensor:
    return Z.clone().t().conj()[1:]


def _negated() -> torch.Tensor:
    return Z.clone().conj().imag[:, ::2]


@pytest.mark.parametrize("make", [_conjugated, _negated])
@pytest.mark.parametrize("grad", [True, False])
def test_a_graph_is_given_what_they_stand_for(make: Any, grad: bool, compiled: Any) -> None:
    def program(x: Any) -> Any:
        return x * 2 + 1, x.t().clone(), x.abs().sum()

    fast, outcomes = compiled(program), []
    for run in (program, fast, fast):
        x = make().requires_grad_(grad)
        results = run(x)
        loss = results[0].abs().sum() + results[2]
        outcomes.append((*results, *(torch.autograd.grad(loss, x) if grad else ())))
    for outcome in outcomes[1:]:
        for one, other in zip(outcome, outcomes[0], strict=True):
            torch.testing.assert_close(one.resolve_conj(), other.resolve_conj())
            assert one.stride() == other.stride()
    torch.testing.assert_close(fast(make().resolve_conj().resolve_neg()), program(make()), rtol=0, atol=0)


@pytest.mark.parametrize("program", [lambda x: x.mul_(2), lambda x: x.t(), lambda x: x.unsqueeze_(0).sum()])
def test_writing_and_returning_them_is_refused(program: Any, compiled: Any) -> None:
    with pytest.raises(UnsupportedProgramError, match="AOT102"):
        compiled(program)(_conjugated())
