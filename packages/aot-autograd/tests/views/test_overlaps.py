"""Operators whose ``out=`` is among what they read."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx import symbolic_trace

from aot_autograd import trace_joint
from fx_interface.errors import UnsupportedProgramError

X = torch.arange(9.0).reshape(3, 3)


def _accumulate(x: Tensor, y: Tensor) -> Tensor:
    """What ``total.addmm_(x, y)`` does."""
    total = x * 2
    torch.addmm(total, x, y, out=total)
    torch.addmm(total, y, x, beta=0.5, alpha=2, out=total)
    return total


def _read_elsewhere(x: Tensor, y: Tensor) -> Tensor:
    total = x * 2
    torch.addmm(y, total, x, out=total)
    return total


def test_what_an_operator_adds_to_may_be_its_result(compiled: Any) -> None:
    assert torch.equal(compiled(_accumulate)(X, X + 1), _accumulate(X, X + 1))


def test_what_is_read_at_other_places_is_refused(library: Any) -> None:
    with pytest.raises(UnsupportedProgramError, match="AOT125"):
        trace_joint(symbolic_trace(_read_elsewhere), [X, X + 1], operators=library)
