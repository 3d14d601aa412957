"""Specs of patches, with windows that leave a border, and of images without a batch."""

from __future__ import annotations

import torch

from primtorch_decomps.testing import check_operator

WINDOWS = [([3, 3], [1, 1], [1, 1], [1, 1]), ([2, 3], [2, 1], [0, 2], [3, 2])]


def test_patches_of_images() -> None:
    for shape in ((2, 3, 8, 9), (3, 8, 9)):
        for window in WINDOWS:
            x = torch.randn(shape)
            check_operator("aten.im2col.default", x, *window, library_call=True)
            columns = torch.ops.aten.im2col.default(x, *window)
            check_operator("aten.col2im.default", columns, [8, 9], *window, library_call=True)


def test_the_gradient_of_windows() -> None:
    windows = torch.randn(2, 11, 3).unfold(1, 4, 2)
    check_operator("aten.unfold_backward.default", windows, [2, 11, 3], 1, 4, 2, library_call=True)
