"""Loops over symbolic sizes that choose by their indices: the same numbers as eager's, for sizes at which parts of the
loops are empty too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import fxstack

_PROGRAMS: dict[str, Callable[[torch.Tensor], Any]] = {
    "windows that overlap": lambda x: F.max_pool2d(x, 3, 2, 1),
    "windows one apart": lambda x: F.max_pool2d(x, 3, 1, 1),
    "windows apart": lambda x: F.max_pool2d(x, 2, 3),
    "means of windows": lambda x: F.avg_pool2d(x, 3),
    "each twice": lambda x: F.interpolate(x, scale_factor=2),
    "each several times": lambda x: F.interpolate(x, (2 * x.shape[2], 3 * x.shape[3]), mode="nearest-exact"),
    "constant border": lambda x: F.pad(x, (3, 1, 0, 2), value=2.0) * 2,
    "reflected": lambda x: F.pad(x, (1, 2, 3, 0), mode="reflect"),
    "held": lambda x: F.pad(x, (1, 2, 3, 0), mode="replicate"),
    "around": lambda x: F.pad(x, (1, 2, 3, 0), mode="circular"),
    "rolled": lambda x: x.roll((1, -2), (2, 3)),
    "one after the other": lambda x: x.reshape(-1)[1:] * 2,
    "from the second": lambda x: x[:, 1:].reshape(x.shape[0], -1)[:, 3:] + 1,
    "joined": lambda x: torch.cat([x, x[..., :2], x + 1], -1).exp(),
    "triangle": lambda x: x.tril() + x.triu(1).sum(-1, keepdim=True),
    "turned": lambda x: torch.cat([-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]], -1),
}


@pytest.mark.parametrize("name", _PROGRAMS)
def test_borders_of_any_size(name: str) -> None:
    function = _PROGRAMS[name]
    compiled = fxstack.compile(function, dynamic=True)
    for height, width in ((13, 22), (40, 9), (4, 4), (5, 4), (4, 33), (64, 31)):
        x = torch.randn(2, 3, height, width)
        for given in (x, x.bfloat16(), x.to(memory_format=torch.channels_last)):
            torch.testing.assert_close(compiled(given), function(given), rtol=1.3e-6, atol=1e-6)


def test_gradients_of_images_of_any_size_are_read_as_they_lie() -> None:
    function = _PROGRAMS["means of windows"]
    compiled = fxstack.compile(function, dynamic=True)
    for height, width in ((13, 22), (40, 9)):
        given = [torch.randn(2, 3, height, width).to(memory_format=torch.channels_last) for _ in range(2)]
        given[1].copy_(given[0])
        results = [run(x.requires_grad_()) for run, x in zip((function, compiled), given, strict=True)]
        gradient = torch.randn_like(results[0])
        found = [torch.autograd.grad(y, x, gradient)[0] for y, x in zip(results, given, strict=True)]
        assert found[0].stride() == found[1].stride()
        torch.testing.assert_close(found[1], found[0])
