"""Operators whose schema does not tell the whole story."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fx_interface.errors import UnsupportedProgramError


def test_polygamma_in_place(check: Any) -> None:
    check(lambda x: x.clone().polygamma_(1), torch.rand(4, dtype=torch.float64) + 1)


def test_content_that_a_kernel_reads_is_refused(compiled: Any) -> None:
    with pytest.raises(UnsupportedProgramError) as refusal:
        compiled(lambda x, places: torch.tensor_split(x, places))(torch.randn(6), torch.tensor([2, 4]))
    assert refusal.value.code == "AOT106"


def test_what_torch_writes_through_an_unsafe_view_arrives(check: Any) -> None:
    """``kron`` gives its ``out`` another shape and writes there."""
    check(
        lambda x, y, out: torch.kron(x, y, out=out) * 2,
        torch.ones(2, 3),
        torch.arange(6.0).view(3, 2),
        torch.zeros(6, 6),
    )
