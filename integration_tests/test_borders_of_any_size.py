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
