"""Specs of pooling with windows that overlap, leave a border, or round up."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from primtorch_decomps.testing import check_operator

IMAGES = [
    torch.randn(2, 3, 9, 7),
    torch.randn(2, 3, 9, 7).to(memory_format=torch.channels_last),
    torch.randn(3, 9, 7),
]
WINDOWS: list[tuple[Any, ...]] = [
    ([3, 3], [2, 2], [1, 1]),
    ([2, 3], [], [0, 1]),
    ([3], [2]),
    ([2, 2], [2, 2], [0, 0]),
]


@pytest.mark.parametrize("ceil_mode", [True, False])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("image", range(len(IMAGES)))
def test_specs(image: int, window: tuple[Any, ...], ceil_mode: bool) -> None:
    x = IMAGES[image]
    kernel, stride, padding = (*window, [0, 0])[:3]
    args = (x, kernel, stride, padding, [1, 1], ceil_mode)
    is_called = ceil_mode or not x.is_contiguous()  # else it has a formula
    check_operator("aten.max_pool2d_with_indices.default", *args, library_call=is_called)
    result, places = torch.ops.aten.max_pool2d_with_indices.default(*args)
    backward = (torch.randn_like(result), x, kernel, stride, padding, [1, 1], ceil_mode, places)
    check_operator("aten.max_pool2d_with_indices_backward.default", *backward, library_call=True)
    args = (x, kernel, stride, padding, ceil_mode)
    is_called = ceil_mode or kernel != stride  # windows side by side are averaged by a formula
    check_operator("aten.avg_pool2d.default", *args, library_call=is_called)
    backward = (torch.randn_like(result), x, kernel, stride, padding, ceil_mode, True, None)
    check_operator("aten.avg_pool2d_backward.default", *backward, library_call=True)


def test_uneven_adaptive_pooling() -> None:
    for x in IMAGES:
        check_operator("aten._adaptive_avg_pool2d.default", x, [4, 2], library_call=True)
        grad = torch.randn_like(torch.ops.aten._adaptive_avg_pool2d.default(x, [4, 2]))
        check_operator("aten._adaptive_avg_pool2d_backward.default", grad, x, library_call=True)
