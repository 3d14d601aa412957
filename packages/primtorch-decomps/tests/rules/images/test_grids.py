"""Specs of images looked up at points, and turned."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_open_spec

X = torch.rand(2, 3, 4, 5)
LAYOUTS = [X, X.transpose(0, 1).contiguous().transpose(0, 1), X.contiguous(memory_format=torch.channels_last)]


@pytest.mark.parametrize("x", LAYOUTS)
def test_images_at_points(x: torch.Tensor) -> None:
    points, grad = torch.rand(2, 7, 6, 2), torch.rand(2, 3, 7, 6)
    check_open_spec("aten.grid_sampler_2d.default", x, points, 0, 0, False)
    for both in (True, False):
        rest = (0, 0, False, [both, True])
        check_open_spec("aten.grid_sampler_2d_backward.default", grad, x, points, *rest)


def test_volumes_at_points() -> None:
    x, points = torch.rand(2, 3, 4, 5, 6), torch.rand(2, 7, 6, 5, 3)
    check_open_spec("aten.grid_sampler_3d.default", x, points, 0, 0, False)
    grad = torch.rand(2, 3, 7, 6, 5)
    check_open_spec("aten.grid_sampler_3d_backward.default", grad, x, points, 0, 0, False, [True, True])


@pytest.mark.parametrize("x", [*LAYOUTS, X[:1].expand(2, 3, 4, 5), X[..., :1].expand(2, 3, 4, 5)])
@pytest.mark.parametrize("k", range(-1, 4))
def test_right_angles(x: torch.Tensor, k: int) -> None:
    for dims in ([0, 1], [1, -1]):
        check_open_spec("aten.rot90.default", x, k, dims)


def test_grids_of_affine_maps() -> None:
    check_open_spec("aten.affine_grid_generator.default", torch.rand(4, 2, 3), [4, 3, 5, 6], False)
    check_open_spec("aten.affine_grid_generator.default", torch.rand(3, 3, 4), [3, 1, 5, 6, 7], True)
