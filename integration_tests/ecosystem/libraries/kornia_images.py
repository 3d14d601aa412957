"""kornia: filters and geometry of images."""

from __future__ import annotations

from typing import Any

import torch
from programs import Compile, Program, Step
from torch import Tensor


def filters(compile: Compile) -> Step:
    from kornia.color import rgb_to_grayscale, rgb_to_hsv
    from kornia.filters import gaussian_blur2d, sobel

    @compile
    def process(images: Tensor) -> Any:
        edges = sobel(gaussian_blur2d(rgb_to_grayscale(images), (5, 5), (1.5, 1.5)))
        return edges, rgb_to_hsv(images)

    images = torch.rand(2, 3, 48, 48)
    return lambda: process(images)


def warp(compile: Compile) -> Step:
    from kornia.geometry.transform import get_rotation_matrix2d, resize, warp_affine

    centre, scale = torch.tensor([[24.0, 24.0]]), torch.ones(1, 2)

    @compile
    def process(images: Tensor, angle: Tensor) -> Tensor:
        turn = get_rotation_matrix2d(centre, angle, scale).expand(2, -1, -1)
        return resize(warp_affine(images, turn, (48, 48)), (24, 24))

    images, angle = torch.rand(2, 3, 48, 48, requires_grad=True), torch.tensor([30.0])

    def step() -> Any:
        result = process(images, angle)
        return result, torch.autograd.grad(result.square().sum(), images)

    return step


NEEDS = ("kornia",)
PROGRAMS = (Program("kornia, filters", filters, NEEDS), Program("kornia, warp", warp, NEEDS))
