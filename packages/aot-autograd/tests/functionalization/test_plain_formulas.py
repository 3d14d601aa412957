"""Derivatives that torch computes otherwise for traced tensors than for plain ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

INFINITE, TINY = float("inf"), 1e-30
PROGRAMS: list[Callable[[torch.Tensor], torch.Tensor]] = [
    lambda x: x.prod(),
    lambda x: x.prod(0),
    lambda x: x.prod(1, keepdim=True),
    lambda x: x.prod(-1),
    lambda x: x.max(),
    lambda x: x.min(),
    lambda x: x.median(),
]


ROWS = [
    [[1.0, 2.0, 3.0], [4.0, 5.0, -6.0]],
    [[0.0, 2.0, 2.0], [4.0, 0.0, 1.0]],
    [[0.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
    [[INFINITE, TINY, 1.0], [2.0, TINY, 1e30]],
    [[0.0, INFINITE, 1.0], [2.0, TINY, 1e30]],
    [[float("nan"), 2.0, 1.0], [2.0, 2.0, 1.0]],
]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("arriving", [1.0, INFINITE])
def test_agree(compiled: Any, program: Any, rows: Any, arriving: float) -> None:
    found = []
    for function in (program, compiled(program)):
        x = torch.tensor(rows, requires_grad=True)
        result = function(x)
        result.backward(torch.full_like(result, arriving))
        found.append(x.grad)
    torch.testing.assert_close(found[1], found[0], equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("arriving", [1.0, INFINITE])
def test_gradients_asked_for_inside(compiled: Any, program: Any, rows: Any, arriving: float) -> None:
    def asked(x: torch.Tensor) -> torch.Tensor:
        result = program(x)
        (found,) = torch.autograd.grad(result, x, torch.full_like(result, arriving))
        return found

    found = [function(torch.tensor(rows, requires_grad=True)) for function in (asked, compiled(asked))]
    torch.testing.assert_close(found[1], found[0], equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x.prod(),
        lambda x: x.prod(0),
        lambda x: x.prod(-1, keepdim=True),
        lambda x: x[:, :1].prod(1) * 2,
        lambda x: (x[:, :1] * x[:, :1].prod(-1, keepdim=True)).sum(),
    ],
)
@pytest.mark.parametrize(
    "rows", [[[INFINITE]], [[float("nan")]], [[2.0]], [[0.0]], [[INFINITE], [0.0]], [[INFINITE], [3.0]]]
)
def test_one_factor(compiled: Any, program: Any, rows: Any) -> None:
    found = []
    for function in (program, compiled(program)):
        x = torch.tensor(rows, requires_grad=True)
        function(x).sum().backward()
        found.append(x.grad)
    torch.testing.assert_close(found[1], found[0], equal_nan=True, rtol=0, atol=0)
