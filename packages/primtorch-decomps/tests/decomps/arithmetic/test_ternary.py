"""Selection, fused multiply-adds, interpolation and clamping."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_operator

X, Y, Z = torch.randn(3, 4), torch.randn(4), torch.rand(3, 1) + 0.5
NAN = torch.tensor([0.0, float("nan"), 5.0, -5.0])


def test_where() -> None:
    check_operator("aten.where.self", X > 0, X, Y)
    check_operator("aten.where.self", X > 0, X, torch.tensor(1.0, dtype=torch.float64))
    check_operator("aten.where.self", X.t() > 0, X.t(), torch.tensor(3))
    check_operator("aten.where.self", Y > 0, torch.tensor(1.0), torch.tensor(2))


def test_masked_fill() -> None:
    check_operator("aten.masked_fill.Scalar", X, Y > 0, float("-inf"))
    check_operator("aten.masked_fill.Scalar", Y, X > 0, 2)
    check_operator("aten.masked_fill.Tensor", X.bfloat16(), X > 0, torch.tensor(0.5))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_multiply_add(dtype: torch.dtype) -> None:
    x, y, z = (t.to(dtype) for t in (X, Y, Z))
    check_operator("aten.addcmul.default", x, y, z, value=0.5)
    check_operator("aten.addcdiv.default", x, y, z, value=-2.0)
    check_operator("aten.addcmul.default", torch.arange(4), torch.arange(4), torch.arange(4), value=3)


def test_lerp() -> None:
    for weight in (0.0, 0.3, 0.5, 0.9, 1.0):
        check_operator("aten.lerp.Scalar", X, X.flip(0), weight)
    check_operator("aten.lerp.Tensor", X, X.flip(0), torch.rand(3, 4))


def test_clamp() -> None:
    check_operator("aten.clamp.default", NAN, -1.0, 1.0)
    check_operator("aten.clamp.default", NAN, None, 1.0)
    check_operator("aten.clamp.default", NAN, 2.0, 1.0)
    check_operator("aten.clamp.default", torch.arange(5), 1, 2.5)
    check_operator("aten.clamp.default", NAN, max=1.0)
    check_operator("aten.clamp.Tensor", X, Y, Z)
    check_operator("aten.clamp_min.default", NAN, 0.5)
    check_operator("aten.clamp_max.Tensor", X, Y)
