"""Copies to another dtype or memory format."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_operator

X = torch.randn(2, 3, 4, 5)
LAYOUTS = [
    X,
    X.permute(2, 0, 1, 3),
    X[:, ::2],
    X[:, :1].expand(2, 3, 4, 5),
    X.to(memory_format=torch.channels_last),
]


@pytest.mark.parametrize("layout", range(len(LAYOUTS)))
def test_clone_and_convert(layout: int) -> None:
    x = LAYOUTS[layout]
    check_operator("aten.clone.default", x)
    check_operator("aten.clone.default", x, memory_format=torch.contiguous_format)
    check_operator("aten.clone.default", x, memory_format=torch.channels_last)
    check_operator("aten._to_copy.default", x, dtype=torch.float64)
    check_operator("aten._to_copy.default", x, dtype=torch.bfloat16, memory_format=torch.contiguous_format)
    check_operator("aten._to_copy.default", x)
    check_operator("aten.copy.default", x, torch.randn(5).bfloat16())


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float16, torch.uint8], ids=str)
def test_values(dtype: torch.dtype) -> None:
    check_operator("aten._to_copy.default", torch.tensor([0.0, 0.4, 1.6, 3.0]), dtype=dtype)
    check_operator("aten._to_copy.default", torch.tensor([True, False]), dtype=dtype)
