"""Specs of medians, running extremes, memberships and histograms in several layouts."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_open_spec

X = torch.rand(2, 3, 4, 5)
LAYOUTS = [X, X.transpose(0, 1).contiguous().transpose(0, 1), X.contiguous(memory_format=torch.channels_last)]


@pytest.mark.parametrize("x", LAYOUTS)
def test_order_statistics(x: torch.Tensor) -> None:
    for keepdim in (False, True):
        for name in ("median.dim", "nanmedian.dim", "mode.default"):
            check_open_spec(f"aten.{name}", x, 1, keepdim)
        check_open_spec("aten.kthvalue.default", x, 2, -2, keepdim)
    check_open_spec("aten.median.default", x)
    check_open_spec("aten.nanmedian.default", x)


@pytest.mark.parametrize("x", LAYOUTS)
def test_running_extremes_and_memberships(x: torch.Tensor) -> None:
    for name in ("cummax", "cummin", "logcumsumexp"):
        check_open_spec(f"aten.{name}.default", x, 2)
    check_open_spec("aten.isin.Tensor_Tensor", x, torch.rand(7))
    check_open_spec("aten.isin.Tensor_Scalar", x, 1)
    check_open_spec("aten.histc.default", x, 7)
