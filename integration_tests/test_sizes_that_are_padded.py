"""Sizes that are padded to a multiple: they are even for certain, but nobody knows that their half divides them."""

from __future__ import annotations

import torch
from torch.nn import functional as F

import fxstack


def test_normalized_pixels_of_a_padded_image() -> None:
    """Pixels that are made of channels are read by halves of a size that a reduction reads whole."""

    def program(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        x = F.pad(x, (0, 0, 0, -x.size(2) % 4))
        pixels = F.pixel_shuffle(x[:, :, ::2, ::2] * scale[:, None, None], 2) + x[:, :8]
        centered = pixels - pixels.mean(1, keepdim=True)
        return centered / (centered.square().mean(1, keepdim=True) + 1e-6).sqrt()

    fast = fxstack.compile(program, options={"on_internal_error": "raise"})
    torch.manual_seed(0)
    for rows in (32, 37, 16, 20):
        x, scale = torch.rand(1, 32, rows, 32), torch.rand(32)
        torch.testing.assert_close(fast(x, scale), program(x, scale))
