"""``tensor.data = other`` inside of a compiled function, under every backend: what objects, memory and values are."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import fxstack


def returned(x: Tensor, y: Tensor) -> Any:
    x.data = y
    y.data = torch.zeros(0)
    return x


def written(x: Tensor, y: Tensor) -> Any:
    x.data = y
    x.add_(1)
    return y * 3


def swapped(x: Tensor, y: Tensor) -> Any:
    x.data, y.data = y.data, x.data
    x.mul_(2)
    return x - y


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("program", [returned, written, swapped], ids=lambda program: program.__name__)
def test_data_replaced_inside(program: Any, backend: str) -> None:
    fast = fxstack.compile(program, backend=backend, fullgraph=True)
    for _ in range(2):
        outcomes = []
        for run in (program, fast):
            x, y = torch.arange(3.0), torch.arange(3.0) + 5
            old = y.untyped_storage().data_ptr()
            result = run(x, y)
            shares = x.untyped_storage().data_ptr() == old
            outcomes.append((result is x, shares, x, y, result))
        assert outcomes[0][:2] == outcomes[1][:2]
        torch.testing.assert_close(outcomes[1][2:], outcomes[0][2:])
