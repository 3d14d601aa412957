"""Margins, for each way of reducing them."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_operator

REDUCTIONS = [0, 1, 2]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_signs(reduction: int, dtype: torch.dtype) -> None:
    x, target = torch.randn(3, 4).to(dtype), torch.randn(3, 4).sign().to(dtype)
    grad = torch.randn(3, 4) if reduction == 0 else torch.randn(())
    check_operator("aten.soft_margin_loss.default", x, target, reduction)
    check_operator("aten.soft_margin_loss_backward.default", grad.to(dtype), x, target, reduction)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_classes(reduction: int, p: int, weighted: bool) -> None:
    x, target = torch.randn(5, 4), torch.tensor([0, 3, 1, 1, 2])
    weight = torch.rand(4) if weighted else None
    grad = torch.randn(5) if reduction == 0 else torch.randn(())
    check_operator("aten.multi_margin_loss.default", x, target, p, 0.7, weight, reduction)
    check_operator("aten.multi_margin_loss_backward.default", grad, x, target, p, 0.7, weight, reduction)
