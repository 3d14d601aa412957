"""Gradients at zeros, bounds, infinities and NaN: what eager's kernels let through, decompositions let through."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from primtorch_decomps.testing import check_operator

EDGES = (
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.0,
    -1.0,
    2.0,
    3.0,
    -3.0,
    40.0,
    -40.0,
    float("inf"),
    float("-inf"),
    float("nan"),
)
GRADIENTS = (1.0, -2.0, 0.0, float("inf"), float("nan"))
PAIRS = torch.tensor(list(itertools.product(GRADIENTS, EDGES)))
GRAD, X = PAIRS.repeat(16, 1).t().contiguous()  # whole vectors: eager's kernels treat the rest otherwise
TARGET = X.roll(5)
POINTWISE: list[tuple[str, tuple[Any, ...]]] = [
    ("threshold_backward", (0,)),
    ("threshold_backward", (1.0,)),
    ("sigmoid_backward", ()),
    ("tanh_backward", ()),
    ("leaky_relu_backward", (0.1, False)),
    ("hardtanh_backward", (-1.0, 1.0)),
    ("hardsigmoid_backward", ()),
    ("hardswish_backward", ()),
    ("softplus_backward", (2.0, 20.0)),
    ("hardshrink_backward", (0.5,)),
    ("softshrink_backward", (0.5,)),
    ("logit_backward", (0.15,)),
    ("logit_backward", ()),
    ("silu_backward", ()),
    ("mish_backward", ()),
    ("gelu_backward", ()),
]


@pytest.mark.parametrize(("name", "args"), POINTWISE)
def test_activations(name: str, args: tuple[Any, ...]) -> None:
    check_operator(f"aten.{name}.default", GRAD, X, *args)


@pytest.mark.parametrize("is_result", [True, False])
def test_elu(is_result: bool) -> None:
    check_operator("aten.elu_backward.default", GRAD, 1.5, 2.0, 0.5, is_result, X)


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("mse_loss_backward", ()),
        ("smooth_l1_loss_backward", (1.0,)),
        ("smooth_l1_loss_backward", (0.0,)),
        ("huber_loss_backward", (1.0,)),
        ("soft_margin_loss_backward", ()),
    ],
)
def test_losses(name: str, args: tuple[Any, ...], reduction: int) -> None:
    grad = GRAD if reduction == 0 else torch.tensor(2.0)
    check_operator(f"aten.{name}.default", grad, X, TARGET, reduction, *args)


def test_prelu() -> None:
    check_operator("aten._prelu_kernel_backward.default", GRAD, X, TARGET)
