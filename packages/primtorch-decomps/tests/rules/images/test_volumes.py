"""Specs of pooling to a given size and of windows in three dimensions: with and without a batch, channels last."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_open_spec

IMAGE = torch.rand(2, 3, 8, 9)
VOLUME = torch.rand(2, 3, 8, 9, 10)
IMAGES = [IMAGE, IMAGE.contiguous(memory_format=torch.channels_last), IMAGE[0]]
VOLUMES = [VOLUME, VOLUME.contiguous(memory_format=torch.channels_last_3d), VOLUME[0]]
aten = torch.ops.aten


@pytest.mark.parametrize("x", IMAGES)
def test_images(x: torch.Tensor) -> None:
    check_open_spec("aten.adaptive_max_pool2d.default", x, [2, 3])
    made, places = aten.adaptive_max_pool2d.default(x, [2, 3])
    check_open_spec("aten.adaptive_max_pool2d_backward.default", made, x, places)
    check_open_spec("aten.max_unpool2d.default", made, places, [8, 9])
    samples = torch.rand(*(x.shape[:2] if x.dim() == 4 else (1, 3)), 2)
    check_open_spec("aten.fractional_max_pool2d.default", x, [2, 3], [4, 4], samples)
    made, places = aten.fractional_max_pool2d.default(x, [2, 3], [4, 4], samples)
    check_open_spec("aten.fractional_max_pool2d_backward.default", made, x, [2, 3], [4, 4], places)


@pytest.mark.parametrize("x", VOLUMES)
def test_volumes(x: torch.Tensor) -> None:
    check_open_spec("aten.adaptive_max_pool3d.default", x, [2, 3, 4])
    made, places = aten.adaptive_max_pool3d.default(x, [2, 3, 4])
    check_open_spec("aten.adaptive_max_pool3d_backward.default", made, x, places)
    check_open_spec("aten._adaptive_avg_pool3d.default", x, [2, 3, 4])
    check_open_spec("aten._adaptive_avg_pool3d_backward.default", made, x)
    samples = torch.rand(*(x.shape[:2] if x.dim() == 5 else (1, 3)), 3)
    check_open_spec("aten.fractional_max_pool3d.default", x, [2, 3, 2], [4, 4, 4], samples)
    made, places = aten.fractional_max_pool3d.default(x, [2, 3, 2], [4, 4, 4], samples)
    check_open_spec("aten.fractional_max_pool3d_backward.default", made, x, [2, 3, 2], [4, 4, 4], places)


@pytest.mark.parametrize("x", VOLUMES)
@pytest.mark.parametrize("ceil_mode", [False, True])
def test_windows(x: torch.Tensor, ceil_mode: bool) -> None:
    window = ([2, 3, 3], [2, 2, 2], [0, 1, 1])
    check_open_spec("aten.avg_pool3d.default", x, *window, ceil_mode)
    made = aten.avg_pool3d.default(x, *window, ceil_mode)
    check_open_spec("aten.avg_pool3d_backward.default", made, x, *window, ceil_mode, True, None)
    check_open_spec("aten.max_pool3d_with_indices.default", x, *window, 1, ceil_mode)
    made, places = aten.max_pool3d_with_indices.default(x, *window, 1, ceil_mode)
    if x.dim() == 5:
        rest = (*window, [1, 1, 1], ceil_mode, places)
        check_open_spec("aten.max_pool3d_with_indices_backward.default", made, x, *rest)
    check_open_spec("aten.max_unpool3d.default", made, places, [8, 9, 10], [2, 2, 2], [0, 1, 1])
