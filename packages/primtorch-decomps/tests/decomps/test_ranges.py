"""Evenly spaced numbers."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_operator


@pytest.mark.parametrize("steps", [0, 1, 2, 7, 50])
@pytest.mark.parametrize("dtype", [None, torch.float64], ids=str)
def test_ends_are_met(steps: int, dtype: torch.dtype | None) -> None:
    check_operator("aten.linspace.default", -2.3, 4, steps, dtype=dtype)
    check_operator("aten.logspace.default", -1, 2.5, steps, 2.0, dtype=dtype)


def test_half_types_are_left_to_the_library() -> None:
    """Eager rounds the ends and the step first."""
    check_operator("aten.linspace.default", -2.3, 4, 50, dtype=torch.bfloat16, library_call=True)
