"""``rng="counter"``: repeatable, right in distribution, computed again in the backward instead of kept, and fused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import fxstack
from fxstack.counter_random import COUNTER, _bits

N = 1 << 14


@pytest.fixture
def counted(tmp_path: Path) -> Callable[..., Any]:
    def compile(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        chosen = {"cache_dir": tmp_path, "rng": "counter", **options}
        return fxstack.compile(function, options=chosen, fullgraph=True)

    return compile


def test_the_bits_are_splitmix64s() -> None:
    torch.manual_seed(0)
    seed = int(torch.randint(-(1 << 63), (1 << 63) - 1, (1,), dtype=torch.int64))
    torch.manual_seed(0)
    found = _bits((5,), torch.device("cpu"))
    mask = (1 << 64) - 1
    for i in range(5):
        z = (seed + i * 0x9E3779B97F4A7C15) & mask
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        assert int(found[i]) & mask == z ^ (z >> 31)


def test_the_same_seed_gives_the_same_numbers_and_another_does_not(counted: Any) -> None:
    run = counted(lambda x: (F.dropout(x, 0.4), torch.rand_like(x)))
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(run(torch.ones(N)))
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])
    assert not torch.equal(found[0][0], found[2][0])
    assert not torch.equal(found[0][1], run(torch.ones(N))[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_the_numbers_are_distributed_as_they_should(dtype: torch.dtype, counted: Any) -> None:
    def function(x: Tensor) -> tuple[Tensor, ...]:
        uniform, shifted = torch.rand_like(x), torch.empty_like(x).uniform_(2, 4)
        return uniform, shifted, torch.bernoulli(torch.full_like(x, 0.25)), F.dropout(x, 0.25), torch.rand(N)

    torch.manual_seed(0)
    uniform, shifted, coins, dropped, fresh = (
        t.double() for t in counted(function)(torch.ones(N, dtype=dtype))
    )
    for numbers in (uniform, (shifted - 2) / 2, fresh):
        assert 0 <= float(numbers.min()) < 0.01
        assert 0.98 < float(numbers.max()) <= 1
        assert abs(float(numbers.mean()) - 0.5) < 0.01
        assert abs(float(numbers.var()) - 1 / 12) < 0.003
        assert abs(float(torch.corrcoef(torch.stack([numbers[1:], numbers[:-1]]))[0, 1])) < 0.03
    assert abs(float(coins.mean()) - 0.25) < 0.015
    kept = dropped != 0
    assert abs(float(kept.double().mean()) - 0.75) < 0.015
    torch.testing.assert_close(dropped[kept], torch.full_like(dropped[kept], 1 / 0.75), rtol=0.01, atol=0)
    assert abs(float(torch.corrcoef(torch.stack([uniform, shifted]))[0, 1])) < 0.03


@pytest.mark.parametrize("budget", [None, 1.0, 0.0], ids=str)
def test_the_backward_computes_the_same_mask(budget: float | None, counted: Any) -> None:
    run = counted(lambda x, w: F.dropout(x.exp() @ w, 0.5) * x, activation_budget=budget)
    x, w = torch.randn(64, 64).exp().requires_grad_(), torch.eye(64)
    result = run(x, w)
    (gradient,) = torch.autograd.grad(result.sum(), x)
    kept = result != 0
    expected = torch.where(kept, 2 * x.exp() * (1 + x), 0)
    torch.testing.assert_close(gradient, expected.detach())
    assert 0.4 < float(kept.float().mean()) < 0.6


def test_what_it_does_not_cover_is_eagers(counted: Any) -> None:
    def function(x: Tensor) -> Tensor:
        return torch.randn_like(x) + torch.randperm(x.shape[0])

    found = []
    for run in (function, counted(function)):
        torch.manual_seed(4)
        found.append(run(torch.ones(9)))
    assert torch.equal(*found)


def test_sizes_may_vary(tmp_path: Path) -> None:
    run = fxstack.compile(
        lambda x: F.dropout(x, 0.5), dynamic=True, options={"rng": "counter", "cache_dir": tmp_path}
    )
    for size in (100, 333):
        assert 0.3 < float((run(torch.ones(size, 7)) != 0).float().mean()) < 0.7


def test_a_generator_of_ones_own_is_not_replaced() -> None:
    x = torch.ones(3)
    generator = torch.Generator()
    for op in (torch.ops.aten.uniform_.default, torch.ops.aten.bernoulli.default):
        assert COUNTER[op](x, generator=generator) is NotImplemented
