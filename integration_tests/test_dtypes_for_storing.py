"""Numbers in dtypes that no kernel computes with: torch's operators convert them, and what surrounds is compiled."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import fxstack

FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)
UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)


def _scaled(stored: torch.Tensor, scale: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return x @ torch.tanh(stored.to(torch.float32) * scale).t()


def _moved(stored: torch.Tensor) -> tuple[torch.Tensor, ...]:
    joined = torch.cat([stored, stored])[1:, ::2]
    return (
        joined.to(torch.float32) + 1,
        stored[:, :2].clone(),
        stored.t().contiguous(),
        torch.zeros_like(stored),
    )


def _compiled(function: Any, *args: torch.Tensor) -> tuple[Any, Any]:
    with fxstack.recording() as record:
        result = fxstack.compile(function, fullgraph=True, options={"cache": False})(*args)
    return result, record.data()


@pytest.mark.parametrize("dtype", FLOAT8 + UNSIGNED)
def test_what_follows_a_conversion_is_compiled(dtype: torch.dtype) -> None:
    stored = torch.arange(12.0).view(3, 4).to(dtype)
    scale, x = torch.rand(3, 1), torch.randn(2, 4)
    result, seen = _compiled(_scaled, stored, scale, x)
    torch.testing.assert_close(result, _scaled(stored, scale, x))
    assert not seen["uncompiled"]
    assert seen["launches"]


@pytest.mark.parametrize("dtype", FLOAT8 + UNSIGNED)
def test_they_are_moved_as_in_eager(dtype: torch.dtype) -> None:
    stored = torch.arange(12.0).view(3, 4).to(dtype)
    result, seen = _compiled(_moved, stored)
    assert not seen["uncompiled"]
    for got, want in zip(result, _moved(stored), strict=True):
        assert got.dtype is want.dtype
        assert got.stride() == want.stride()
        assert torch.equal(got.to(torch.float64), want.to(torch.float64))
