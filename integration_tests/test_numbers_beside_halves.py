"""Numbers beside 16-bit floats, where the number decides: each number of the dtype has eager's result, compiled.

Eager's kernels round a number to the dtype of the tensor in some operators and not in others. For sums and products
that is a matter of rounding; a remainder, or which side of a bound an element is on, is another result.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

import fxstack

Calls = dict[str, Callable[[torch.Tensor], torch.Tensor]]
DTYPES = (torch.bfloat16, torch.float16)
BY_NUMBER: Calls = {
    "fmod": lambda x: torch.fmod(x, 0.3),
    "fmod by a tensor without dimensions": lambda x: torch.fmod(x, torch.tensor(0.3)),
    "remainder": lambda x: x % 0.3,
    "remainder below 0": lambda x: x % -0.7,
    "fmod of a number": lambda x: torch.fmod(torch.tensor(0.7), x),
    "trunc": lambda x: torch.div(x, 0.3, rounding_mode="trunc"),
    "trunc by tensors": lambda x: torch.div(x, x.flip(0), rounding_mode="trunc"),
    "floor by tensors": lambda x: torch.div(x, x.flip(0), rounding_mode="floor"),
    "floor": lambda x: torch.div(x, 0.3, rounding_mode="floor"),
    "threshold": lambda x: F.threshold(x, 0.1, 0.3),
    "hardshrink": lambda x: F.hardshrink(x, 0.3),
    "softshrink": lambda x: F.softshrink(x, 0.3),
    "clamp": lambda x: x.clamp(-0.3, 0.7),
    "hardtanh": lambda x: F.hardtanh(x, -0.3, 0.7),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.1),
    "where": lambda x: torch.where(x > 0.3, 0.1, x),
    "masked_fill": lambda x: x.masked_fill(x >= 0.7, 0.1),
    "nan_to_num": lambda x: torch.nan_to_num(x, 0.1, 0.3, 0.7),
    **{f"logit {eps}": lambda x, eps=eps: torch.logit(x, eps) for eps in (0.3, 1e-3, 1e-6, 0.0)},
}
WITHOUT_GRADIENT: Calls = {
    "remainder of a number": lambda x: 0.7 % x,
    "floor_divide": lambda x: x // 0.3,
    "floor_divide of a number": lambda x: 0.7 // x,
    **{
        f"comparison with {number}": lambda x, number=number: torch.stack(
            [x > number, x >= number, x == number, x < number, x <= number]
        )
        for number in (0.3, 0.1, -0.7)
    },
}


def numbers(dtype: torch.dtype) -> torch.Tensor:
    """Each number of ``dtype`` between 1e-5 and 1e5, of both signs, and 0: quotients stay in the dtype's range."""
    every = torch.arange(-(2**15), 2**15).to(torch.int16).view(dtype)
    return every[(every.abs() > 1e-5) & (every.abs() < 1e5) | (every == 0)]


def unlike(eager: torch.Tensor, compiled: torch.Tensor) -> torch.Tensor:
    """Where results are more than two roundings apart, or NaN in one of the two."""
    if not eager.is_floating_point():
        return eager != compiled
    largest = torch.maximum(eager.float().abs(), compiled.float().abs())
    info = torch.finfo(eager.dtype)
    near = (eager.float() - compiled.float()).abs() <= 2 * info.eps * largest + info.smallest_normal
    return ~(near | (eager == compiled) | (eager.isnan() & compiled.isnan()))


def differing(calls: Calls, x: torch.Tensor, results: list[torch.Tensor], eager: list[torch.Tensor]) -> str:
    found = []
    for name, mine, theirs in zip(calls, results, eager, strict=True):
        bad = unlike(theirs, mine)
        if name.startswith("logit"):  # eager rounds the odds, whose logarithm cancels around 1
            bad = bad & ~((x - 0.5).abs() < 0.2)
        places = bad.reshape(-1, len(x)).any(0)
        if places.any():
            found.append(f"{name}: {int(places.sum())}, of which {x[places][:5].tolist()}")
    return "\n".join(found)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_results(dtype: torch.dtype) -> None:
    x = numbers(dtype)
    calls = BY_NUMBER | WITHOUT_GRADIENT

    def program(x: torch.Tensor) -> list[torch.Tensor]:
        return [call(x) for call in calls.values()]

    assert not differing(calls, x, fxstack.compile(program, fullgraph=True)(x), program(x))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gradients(dtype: torch.dtype) -> None:
    x = numbers(dtype)

    def program(*copies: torch.Tensor) -> torch.Tensor:
        return torch.stack([call(each) for call, each in zip(BY_NUMBER.values(), copies, strict=True)])

    def gradients(function: Callable[..., torch.Tensor]) -> list[torch.Tensor]:
        copies = [x.clone().requires_grad_() for _ in BY_NUMBER]
        function(*copies).backward(torch.ones(len(copies), len(x), dtype=dtype))
        return [copy.grad for copy in copies if copy.grad is not None]

    compiled = gradients(fxstack.compile(program, fullgraph=True))
    assert not differing(BY_NUMBER, x, compiled, gradients(program))
