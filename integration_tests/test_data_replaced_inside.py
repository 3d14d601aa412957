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


def stepped(x: Tensor, y: Tensor) -> Any:
    before = (x * y).sum().square()
    x.data -= 0.1 * y
    return before + (x * x).sum()


def shifted(x: Tensor, y: Tensor) -> Any:
    flat = torch.nn.utils.parameters_to_vector([x]).detach()
    loss = (x * y).sum().square()
    torch.nn.utils.vector_to_parameters(flat + y, [x])
    return loss


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("program", [stepped, shifted], ids=lambda program: program.__name__)
def test_a_leaf_is_trained_whose_data_were_replaced_inside(program: Any, backend: str) -> None:
    fast = fxstack.compile(program, backend=backend, fullgraph=True)
    for _ in range(2):
        outcomes = []
        for run in (program, fast):
            x, y = torch.arange(3.0).requires_grad_(), torch.arange(3.0) + 5
            result = run(x, y)
            result.backward()
            outcomes.append((result, x, x.grad))
        torch.testing.assert_close(outcomes[1], outcomes[0])
