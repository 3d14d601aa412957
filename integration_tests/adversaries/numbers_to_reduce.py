"""Tensors for the accuracy adversary: values that are hard to add up, in every layout."""

from __future__ import annotations

import math

import torch

KINDS = (
    "normal", "positive", "far", "very_far", "alternating", "constant", "wide", "large", "small", "few", "steps",
)  # fmt: skip
"""How values are drawn. ``far``: a mean much larger than the deviation; ``steps``: neighbouring floats."""
ONE_SIGN = ("positive", "far", "very_far", "constant", "few", "steps")
"""Kinds whose sum has no cancellation, so that one sum's error is not a matter of luck."""
LAYOUTS = ("contiguous", "transposed", "strided", "expanded", "channels_last", "offset")


def values(kind: str, shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> torch.Tensor:
    """Float64 values that ``dtype`` holds exactly."""
    random = torch.Generator(torch.get_default_device()).manual_seed(seed)
    x = torch.randn(shape, generator=random, dtype=torch.float64)
    half = dtype in (torch.float16, torch.bfloat16)
    match kind:
        case "positive":
            x = x.abs()
        case "far":
            x = x * 0.5 + 64 if half else x * 1e-1 + 1e3
        case "very_far":
            x = x * 0.25 - 100 if half else x * 1e-3 - 1e4
        case "alternating":
            sign = 1 - 2 * (torch.arange(x.numel(), dtype=torch.float64) % 2)
            x = x * 0.125 + (100 if half else 1e4) * sign.reshape(shape)
        case "constant":
            x = torch.full_like(x, 0.1)
        case "wide":
            x = x * torch.exp(x * (1 if half else 4))
        case "large":
            x = x * (100 if half else 1e17)
        case "small":
            x = x * (1e-2 if half else 1e-16)
        case "few":
            x = torch.where(x > 2, x * 100, 0.125)
        case "steps":
            x = 1 + torch.round(x) * torch.finfo(dtype).eps
    return x.to(dtype).double()


def tensor(kind: str, shape: tuple[int, ...], dtype: torch.dtype, layout: str, seed: int) -> torch.Tensor:
    """A tensor of ``shape``; what its elements are does not depend on its layout, unless it is expanded."""
    if layout == "expanded" and len(shape) > 1:
        few = values(kind, (*shape[:-2], 1, shape[-1]), dtype, seed).to(dtype)
        return few.expand(shape)
    made = values(kind, shape, dtype, seed).to(dtype)
    match layout:
        case "transposed" if len(shape) > 1:
            return made.transpose(-1, -2).contiguous().transpose(-1, -2)
        case "strided":
            whole = torch.zeros((*shape[:-1], 2 * shape[-1]), dtype=dtype)
            whole[..., ::2] = made
            return whole[..., ::2]
        case "channels_last" if len(shape) == 4:
            return made.to(memory_format=torch.channels_last)
        case "offset":
            whole = torch.zeros(math.prod(shape) + 3, dtype=dtype)
            whole[3:] = made.flatten()
            return whole[3:].view(shape)
    return made
