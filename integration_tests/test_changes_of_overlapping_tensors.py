"""Forward derivatives with respect to tensors whose elements share memory: torch refuses them, or the last wins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import jacfwd, jvp, linearize

import fxstack


def of_a_change(x: Tensor, change: Tensor) -> Any:
    return jvp(torch.exp, (x,), (change,))


def of_one_that_is_expanded_inside(x: Tensor, change: Tensor) -> Any:
    return jvp(torch.exp, ((x[:1] * 1).expand(2, 4),), (change,))


def of_all(x: Tensor, change: Tensor) -> Any:
    return jacfwd(torch.exp)(x) * change.sum()


def in_two_steps(x: Tensor, change: Tensor) -> Any:
    value, push = linearize(torch.exp, x)
    return value, push(change)


def outcome(function: Callable[..., Any], x: Tensor, change: Tensor) -> Any:
    try:
        found = function(x, change)
    except RuntimeError as error:
        return str(error)
    return [part.tolist() for part in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.arange(4.0).reshape(1, 4).expand(2, 4),
        lambda: torch.arange(6.0).unfold(0, 4, 2),
        lambda: torch.arange(8.0).reshape(4, 2).t(),
        lambda: torch.arange(1.0).expand(2, 1)[:1].expand(2, 4),
    ],
    ids=["expanded", "unfolded", "transposed", "both"],
)
@pytest.mark.parametrize(
    "function",
    [of_a_change, of_one_that_is_expanded_inside, of_all, in_two_steps],
    ids=lambda function: function.__name__,
)
@pytest.mark.parametrize("dynamic", [False, True])
def test_what_eager_does_or_refuses(function: Any, make: Any, dynamic: bool) -> None:
    compiled = fxstack.compile(function, backend="aot_eager", dynamic=dynamic)
    change = torch.arange(8.0).reshape(2, 4) + 1
    for _ in range(2):
        assert outcome(compiled, make(), change) == outcome(function, make(), change)


def test_a_change_of_another_dtype_is_refused() -> None:
    x = torch.ones(2, 4)
    compiled = fxstack.compile(in_two_steps, backend="aot_eager")
    assert outcome(compiled, x, x) == outcome(in_two_steps, x, x)
    words = outcome(in_two_steps, x, x.double())
    assert "dtype" in words
    assert outcome(compiled, x, x.double()) == words
