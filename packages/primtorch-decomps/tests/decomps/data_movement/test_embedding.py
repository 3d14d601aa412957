"""Embedding look-ups."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_operator


@pytest.mark.parametrize("shape", [(2, 3), (4,), (), (0, 2)])
def test_look_up(shape: tuple[int, ...]) -> None:
    check_operator("aten.embedding.default", torch.randn(7, 5), torch.randint(0, 7, shape), 2)
    check_operator(
        "aten.embedding.default", torch.randn(5, 7).t().bfloat16(), torch.randint(0, 7, shape).int()
    )
