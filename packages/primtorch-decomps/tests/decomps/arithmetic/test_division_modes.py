"""Division with a rounding mode: promotion, and the overload that takes a number."""

from __future__ import annotations

import math

import pytest
import torch

from primtorch_decomps import decompose
from primtorch_decomps.testing import aten_graph, check_operator


@pytest.mark.parametrize("mode", [None, "floor", "trunc"])
def test_promotion(mode: str | None) -> None:
    check_operator("aten.div.Tensor_mode", torch.arange(1, 7), torch.tensor(2.5), rounding_mode=mode)
    check_operator("aten.div.Tensor_mode", torch.arange(1, 7).int(), torch.arange(1, 7), rounding_mode=mode)
    check_operator("aten.div.Scalar_mode", torch.arange(-6, 7), 4, rounding_mode=mode)
    check_operator("aten.div.Scalar_mode", torch.randn(5), 0.3, rounding_mode=mode)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("mode", ["floor", "trunc"])
def test_quotients_of_half_types_round_where_eager_rounds(mode: str, dtype: torch.dtype) -> None:
    """Each step of a tensor by a tensor, nothing where the divisor is one number: 7.293 / 0.6631 is 11 or 10."""
    special = torch.tensor(
        [0.0, -0.0, math.inf, -math.inf, math.nan, 1, -2, 0.1, 6e4, 1e-7, -3.5], dtype=dtype
    )
    pairs = torch.cartesian_prod(special, special)
    x = torch.cat([(torch.randn(20_000) * 20).to(dtype), pairs[:, 0]])
    y = torch.cat([torch.randn(20_000).to(dtype), pairs[:, 1]])
    for divisor in (y, y[:1], y[7]):
        module, inputs = aten_graph(torch.ops.aten.div.Tensor_mode, (x, divisor), {"rounding_mode": mode})
        (found,) = decompose(module)(*inputs)
        expected = torch.div(x, divisor, rounding_mode=mode)
        torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(found.signbit() | found.isnan(), expected.signbit() | expected.isnan())
