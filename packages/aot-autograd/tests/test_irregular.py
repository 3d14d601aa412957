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
