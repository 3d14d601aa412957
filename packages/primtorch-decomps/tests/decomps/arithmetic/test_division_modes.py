"""Division with a rounding mode: promotion, and the overload that takes a number."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_operator


@pytest.mark.parametrize("mode", [None, "floor", "trunc"])
def test_promotion(mode: str | None) -> None:
    check_operator("aten.div.Tensor_mode", torch.arange(1, 7), torch.tensor(2.5), rounding_mode=mode)
    check_operator("aten.div.Tensor_mode", torch.arange(1, 7).int(), torch.arange(1, 7), rounding_mode=mode)
    check_operator("aten.div.Scalar_mode", torch.arange(-6, 7), 4, rounding_mode=mode)
    check_operator("aten.div.Scalar_mode", torch.randn(5), 0.3, rounding_mode=mode)
