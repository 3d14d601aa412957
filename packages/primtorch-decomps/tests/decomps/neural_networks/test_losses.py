"""Losses and their gradients, for each way of reducing them."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps import decompose
from primtorch_decomps.testing import aten_graph, check_operator

NONE, MEAN, SUM = 0, 1, 2
REDUCTIONS = [NONE, MEAN, SUM]
ATEN = torch.ops.aten


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_nll(reduction: int, weighted: bool, dtype: torch.dtype) -> None:
    x = torch.randn(6, 5).log_softmax(1).to(dtype)
    target = torch.tensor([0, 4, -100, 2, 2, -100])
    weight = torch.rand(5).to(dtype) if weighted else None
    check_operator("aten.nll_loss_forward.default", x, target, weight, reduction, -100)
    loss, total = ATEN.nll_loss_forward.default(x, target, weight, reduction, -100)
    args = (torch.randn_like(loss), x, target, weight, reduction, -100, total)
    check_operator("aten.nll_loss_backward.default", *args)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_nll_of_one_sample_and_of_images(reduction: int) -> None:
    x, target = torch.randn(5).log_softmax(0), torch.tensor(3)
    check_operator("aten.nll_loss_forward.default", x, target, None, reduction, -100)
    images, labels = torch.randn(2, 5, 3, 4).log_softmax(1), torch.randint(0, 5, (2, 3, 4))
    check_operator("aten.nll_loss2d_forward.default", images, labels, None, reduction, 1)
    loss, total = ATEN.nll_loss2d_forward.default(images, labels, None, reduction, 1)
    args = (torch.randn_like(loss), images, labels, None, reduction, 1, total)
    check_operator("aten.nll_loss2d_backward.default", *args)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_nll_of_one_sure_sample_is_a_positive_zero(reduction: int) -> None:
    """Eager adds up from 0; what is only negated is -0.0."""
    args = (torch.zeros(1), torch.tensor(0), None, reduction, -100)
    module, inputs = aten_graph(ATEN.nll_loss_forward.default, args, {})
    (found,) = decompose(module)(*inputs)
    assert found[0].item() == 0
    assert not found[0].signbit()
    assert not ATEN.nll_loss_forward.default(*args)[0].signbit()


def test_nll_where_all_targets_are_ignored() -> None:
    x, target = torch.randn(2, 3).log_softmax(1), torch.tensor([-100, -100])
    check_operator("aten.nll_loss_forward.default", x, target, None, MEAN, -100)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_regression(reduction: int) -> None:
    x, target = torch.randn(3, 4), torch.randn(3, 4)
    grad = torch.randn(3, 4) if reduction == NONE else torch.randn(())
    check_operator("aten.mse_loss.default", x, target, reduction)
    check_operator("aten.mse_loss_backward.default", grad, x, target, reduction)
    check_operator("aten.smooth_l1_loss.default", x, target, reduction, 0.7)
    check_operator("aten.smooth_l1_loss_backward.default", grad, x, target, reduction, 0.7)
    check_operator("aten.huber_loss.default", x, target, reduction, 0.7)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_binary_cross_entropy(reduction: int) -> None:
    chance, target = torch.rand(3, 4), torch.rand(3, 4)
    chance[0, 0], chance[0, 1] = 0.0, 1.0
    grad = torch.randn(3, 4) if reduction == NONE else torch.randn(())
    for weight in (None, torch.rand(4)):
        check_operator("aten.binary_cross_entropy.default", chance, target, weight, reduction)
        check_operator("aten.binary_cross_entropy_backward.default", grad, chance, target, weight, reduction)
        logits = torch.randn(3, 4) * 30
        args = (logits, target, weight, torch.rand(4), reduction)
        check_operator("aten.binary_cross_entropy_with_logits.default", *args)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_huber_backward(reduction: int, dtype: torch.dtype) -> None:
    x, target = torch.randn(3, 4).to(dtype), torch.randn(3, 4).to(dtype)
    grad = (torch.randn(3, 4) if reduction == NONE else torch.randn(())).to(dtype)
    check_operator("aten.huber_loss_backward.default", grad, x, target, reduction, 0.7)
