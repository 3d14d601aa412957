"""Layouts of the gradients of resampling."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.registry import overload
from primtorch_decomps.testing import check_spec

NAMES = {
    "upsample_nearest2d": 0,
    "_upsample_nearest_exact2d": 0,
    "upsample_bilinear2d": 1,
    "upsample_bicubic2d": 1,
    "_upsample_bilinear2d_aa": 1,
    "_upsample_bicubic2d_aa": 1,
    "upsample_nearest3d": 0,
    "_upsample_nearest_exact3d": 0,
    "upsample_trilinear3d": 1,
}


@pytest.mark.parametrize("name", NAMES)
def test_gradients_of_channels_last(name: str) -> None:
    dims = 3 if "3d" in name else 2
    layout = torch.channels_last_3d if dims == 3 else torch.channels_last
    grad = torch.randn(2, 3, *[6] * dims).contiguous(memory_format=layout)
    corners = (False,) * NAMES[name]
    args = (grad, [6] * dims, [2, 3, *[4] * dims], *corners, *[None] * dims)
    op = overload(f"aten.{name}_backward.default")
    assert op is not None
    check_spec(op, args, {})
