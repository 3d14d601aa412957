"""Softmax and its relatives."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_operator

INF = float("inf")
DTYPES = [torch.float32, torch.float64, torch.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_forward(dtype: torch.dtype, dim: int) -> None:
    x = (torch.randn(3, 4, 5) * 20).to(dtype)
    check_operator("aten._softmax.default", x, dim, False)
    check_operator("aten._log_softmax.default", x, dim, False)
    check_operator("aten._safe_softmax.default", x, dim)
    check_operator("aten._log_softmax.default", x.transpose(0, 2), dim, False)


def test_masked_rows() -> None:
    x = torch.tensor([[-INF, -INF], [-INF, 1.0], [INF, 0.0]])
    check_operator("aten._safe_softmax.default", x, 1)
    check_operator("aten._softmax.default", x, 1, False)
    check_operator("aten._log_softmax.default", x, 1, False)


@pytest.mark.parametrize("shape", [(), (0, 3), (3, 0)])
def test_edge_shapes(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    check_operator("aten._softmax.default", x, 0, False)
    check_operator("aten._log_softmax.default", x, 0, False)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_backward(dtype: torch.dtype) -> None:
    x = torch.randn(3, 5).to(dtype)
    grad = torch.randn(3, 5).to(dtype)
    check_operator("aten._softmax_backward_data.default", grad, x.softmax(1), 1, dtype)
    check_operator("aten._log_softmax_backward_data.default", grad, x.log_softmax(1), 1, dtype)


def test_other_result_dtype() -> None:
    x = torch.randn(3, 5)
    check_operator("aten._safe_softmax.default", x.bfloat16(), 1, torch.float32)
