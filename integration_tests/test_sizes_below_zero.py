"""Sizes that a program computes and that are negative in some of its calls: the operator refuses them, used or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import fxstack

_MAKERS: dict[str, Callable[[torch.Tensor, int], Any]] = {
    "narrow": lambda x, n: x.narrow(0, 1, n - 2),
    "split": lambda x, n: x.split(n - 2),
    "split with sizes": lambda x, n: x.split([n + n - 2, 2 - n]),
    "zeros": lambda x, n: torch.zeros(n - 2),
    "new_zeros": lambda x, n: x.new_zeros(n - 2),
    "full": lambda x, n: torch.full((n - 2,), 1.0),
    "eye": lambda x, n: torch.eye(n - 2),
    "linspace": lambda x, n: torch.linspace(0, 1, n - 2),
    "arange": lambda x, n: torch.arange(n - 2),
    "window": lambda x, n: torch.hann_window(n - 2),
    "repeat": lambda x, n: x.repeat(n - 2, 1),
    "tile": lambda x, n: x.tile(n - 2),
    "expand": lambda x, n: x[:1].expand(n - 3, -1),
    "pad": lambda x, n: F.pad(x, (0, 0, 0, -3)),
    "unfold": lambda x, n: x.unfold(0, 2, 1),
    "convolution": lambda x, n: torch.conv1d(x.t()[None], torch.ones(1, x.shape[1], 3)),
    "pooling": lambda x, n: F.avg_pool1d(x.t()[None], 3),
    "adaptive pooling": lambda x, n: F.adaptive_avg_pool1d(x.t()[None], n - 2),
    "interpolation": lambda x, n: F.interpolate(x.t()[None], n - 2),
    "unflatten": lambda x, n: x.unflatten(0, (n - 2, -1)),
    "view": lambda x, n: x.view(n - 2, -1),
    "as_strided": lambda x, n: x.as_strided((n - 2,), (1,)),
    "topk": lambda x, n: x.topk(n - 2, 0)[0],
    "kthvalue": lambda x, n: x.kthvalue(n - 2, 0)[0],
    "repeat_interleave": lambda x, n: x.repeat_interleave(n - 2, 0),
    "chunk": lambda x, n: x.chunk(n - 1),
    "tensor_split": lambda x, n: x.tensor_split(n - 1),
    "tril_indices": lambda x, n: torch.tril_indices(n - 2, 3),
}


@pytest.mark.parametrize("is_used", [True, False])
@pytest.mark.parametrize("made", _MAKERS.values(), ids=_MAKERS.keys())
def test_as_in_eager(made: Callable[[torch.Tensor, int], Any], is_used: bool) -> None:
    def program(x: torch.Tensor) -> Any:
        result = made(x, x.shape[0])
        return result if is_used else x.shape[1]

    compiled = fxstack.compile(program, backend="eager")
    for rows, columns in (5, 2), (4, 3), (7, 4), (1, 3), (2, 3), (3, 2):
        x = torch.arange(1.0 * rows * columns).view(rows, columns)
        assert _outcome(compiled, x) == _outcome(program, x)


def test_a_part_of_negative_length_of_a_tensor_without_rows() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        rest = x[1:]
        torch.split(rest, [1, rest.shape[0] - 1])
        return rest

    compiled = fxstack.compile(program, backend="eager")
    for rows, columns in (3, 2), (1, 3), (4, 3):
        x = torch.ones(rows, columns)
        assert _outcome(compiled, x) == _outcome(program, x)


def _outcome(function: Callable[..., Any], x: torch.Tensor) -> Any:
    try:
        return _told(function(x))
    except Exception as error:
        return type(error).__name__, str(error).partition("\nException raised from")[0]  # frames of C++


def _told(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.shape, value.stride(), value.tolist()
    return [_told(part) for part in value] if isinstance(value, (tuple, list)) else value
