"""Gradients of activation functions."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import spec_of
from primtorch_decomps import RULES
from primtorch_decomps.testing import check_operator

X = torch.tensor([0.0, 0.3, -0.7, 1.0, -1.0, 3.0, -3.0, 6.5, 25.0, -25.0, 50.0])
UNIT = torch.tensor([0.0, 0.1, 0.4, 0.5, 0.9, 1.0, 0.2, 0.7, 0.3, 0.8, 0.6])
CASES: list[tuple[str, torch.Tensor, tuple[Any, ...], dict[str, Any]]] = [
    ("threshold_backward", X, (0,), {}),
    ("sigmoid_backward", UNIT, (), {}),
    ("tanh_backward", UNIT, (), {}),
    ("silu_backward", X, (), {}),
    ("gelu_backward", X, (), {}),
    ("gelu_backward", X, (), {"approximate": "tanh"}),
    ("leaky_relu_backward", X, (0.1, False), {}),
    ("hardtanh_backward", X, (-1.0, 1.0), {}),
    ("hardsigmoid_backward", X, (), {}),
    ("hardswish_backward", X, (), {}),
    ("softplus_backward", X, (2.0, 20.0), {}),
    ("mish_backward", X, (), {}),
    ("hardshrink_backward", X, (0.5,), {}),
    ("softshrink_backward", X, (0.5,), {}),
    ("logit_backward", UNIT, (0.15,), {}),
    ("logit_backward", UNIT, (), {}),
    ("log_sigmoid_backward", X, (torch.empty(0),), {}),
]


@pytest.mark.parametrize(
    ("name", "x", "args", "kwargs", "dtype"),
    [(*case, dtype) for case in CASES for dtype in (torch.float32, torch.float64, torch.bfloat16)],
)
def test_agrees_with_eager(name: str, x: torch.Tensor, args: Any, kwargs: Any, dtype: torch.dtype) -> None:
    if name == "log_sigmoid_backward":
        args = (torch.exp(-x.to(dtype).abs()),)
    grad = torch.linspace(-2.0, 2.0, x.numel()).to(dtype)
    check_operator(f"aten.{name}.default", grad, x.to(dtype), *args, **kwargs)


def test_the_buffer_of_log_sigmoid_is_no_operand() -> None:
    """On a GPU it is empty, with which rows of one element would be broadcast."""
    grad, x = spec_of(torch.ones(4, 1)), spec_of(torch.ones(4, 1))
    made = RULES[torch.ops.aten.log_sigmoid_backward.default](
        grad, x, spec_of(torch.empty(0)), env=ShapeEnv()
    )
    assert made.sizes == (4, 1)


@pytest.mark.parametrize("is_result", [True, False])
def test_elu(is_result: bool) -> None:
    check_operator("aten.elu_backward.default", torch.ones(11), 1.5, 2.0, 0.5, is_result, X / 10)


@pytest.mark.parametrize("name", ["silu_backward", "gelu_backward", "tanh_backward"])
def test_layouts(name: str) -> None:
    x = torch.randn(4, 5)
    check_operator(f"aten.{name}.default", x.t(), torch.randn(5, 4))
    check_operator(f"aten.{name}.default", x[:1].expand(4, 5), x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_gates_and_dropout(dtype: torch.dtype) -> None:
    grad = torch.randn(3, 4).to(dtype)
    check_operator("aten.glu_backward.default", grad, torch.randn(3, 8).to(dtype), 1)
    check_operator("aten.native_dropout_backward.default", grad, torch.rand(3, 4) > 0.5, 2.0)


def test_prelu_backward() -> None:
    x, grad = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    check_operator("aten._prelu_kernel_backward.default", grad, x, torch.randn(3, 1))
    check_operator(
        "aten._prelu_kernel_backward.default", grad.bfloat16(), x.bfloat16(), torch.randn(()).bfloat16()
    )
