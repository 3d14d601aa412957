"""Embedding look-ups."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.shapes import has_empty_rows
from primtorch_decomps.testing import check_operator


@pytest.mark.parametrize("shape", [(2, 3), (4,), (), (0, 2)])
def test_look_up(shape: tuple[int, ...]) -> None:
    check_operator("aten.embedding.default", torch.randn(7, 5), torch.randint(0, 7, shape), 2)
    check_operator(
        "aten.embedding.default", torch.randn(5, 7).t().bfloat16(), torch.randint(0, 7, shape).int()
    )


@pytest.mark.parametrize("rows", [(2, 0), (2, 3, 0)])
def test_rows_without_elements_are_left_to_the_kernel_which_checks_indices(rows: tuple[int, ...]) -> None:
    check_operator("aten.embedding.default", torch.zeros(2, 0), torch.tensor([1, 0]))
    assert has_empty_rows(rows, 0)
    assert not has_empty_rows((0, 2), 0)
