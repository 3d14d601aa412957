"""Activation functions agree with eager, large and special values included."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from primtorch_decomps.testing import check_operator

VALUES = torch.tensor(
    [0.0, -0.0, 0.3, -0.7, 1.0, -1.0, 3.0, -3.0, 6.5, 25.0, -25.0, 90.0, -90.0, float("nan")]
)
CASES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("relu", (), {}),
    ("hardtanh", (-2.0, 0.5), {}),
    ("silu", (), {}),
    ("gelu", (), {}),
    ("gelu", (), {"approximate": "tanh"}),
    ("leaky_relu", (0.2,), {}),
    ("elu", (1.5, 2.0, 0.5), {}),
    ("celu", (0.7,), {}),
    ("selu", (), {}),
    ("softplus", (2.0, 10.0), {}),
    ("mish", (), {}),
    ("hardsigmoid", (), {}),
    ("hardswish", (), {}),
    ("hardshrink", (0.4,), {}),
    ("softshrink", (0.4,), {}),
    ("threshold", (0.5, -1.0), {}),
    ("log_sigmoid", (), {}),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("name", "args", "kwargs"), CASES)
def test_agrees_with_eager(name: str, args: Any, kwargs: Any, dtype: torch.dtype) -> None:
    if (
        name in ("hardswish", "hardsigmoid")
        and dtype is torch.float64
        and torch.get_default_device().type != "cpu"
    ):
        pytest.skip("eager divides by a float32 constant")
    check_operator(f"aten.{name}.default", VALUES.to(dtype), *args, **kwargs)


def test_infinities() -> None:
    x = torch.tensor([float("inf"), float("-inf")])
    for name in ("relu", "silu", "softplus", "elu", "hardswish"):
        check_operator(f"aten.{name}.default", x)


def test_relu_of_integers() -> None:
    check_operator("aten.relu.default", torch.tensor([-1, 0, 2]))


def test_prelu() -> None:
    check_operator("aten._prelu_kernel.default", torch.randn(2, 3, 4), torch.randn(1, 3, 1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_gates(dtype: torch.dtype) -> None:
    for x, dim in ((torch.randn(3, 8).to(dtype), -1), (torch.randn(4, 3, 2).to(dtype), 0)):
        check_operator("aten.glu.default", x, dim)
    check_operator("aten.log_sigmoid_forward.default", VALUES[:-1].to(dtype))
