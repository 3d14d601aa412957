"""Loops whose Python numbers differ in every round, through the whole stack: few versions, and the values of eager."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import fxstack

STEPS = 20


class Denoiser(nn.Module):
    """A small network that is told the time."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.SiLU(), nn.Conv2d(8, 4, 3, padding=1))
        self.frequencies = nn.Parameter(torch.linspace(0.1, 1, 4))

    def forward(self, x: Tensor, time: float) -> Tensor:
        embedded = torch.sin(self.frequencies * (1000 * time))
        out: Tensor = self.inner(x + embedded[:, None, None])
        return out


class Sampler(nn.Module):
    """One step of a sampler with a cosine schedule; ``step`` also counts as an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.network = Denoiser()
        self.done = 0

    def forward(self, x: Tensor, step: int) -> Tensor:
        self.done += 1
        now = math.cos(step / STEPS * math.pi / 2.2) ** 2
        after = math.cos((step + 1) / STEPS * math.pi / 2.2) ** 2
        noise = self.network(x, 1 - step / STEPS)
        clean = ((x - noise * math.sqrt(1 - now)) / math.sqrt(now)).clamp(
            -2 - 1 / (step + 1), 2 + 1 / (step + 1)
        )
        mixed = torch.add(clean * math.sqrt(after), noise, alpha=math.sqrt(max(1 - after, 0.0)))
        return torch.where(mixed.abs() < 0.01 * 0.9**step, 0.05 / self.done, mixed)


def _versions(fast: Any) -> int:
    report = fast.__fxstack_capture__.report
    assert not report.eager
    assert not [r.stopped for _, r in report.replacements if r.stopped is not None]
    return len(report.replacements)


@pytest.mark.parametrize("dynamic", [None, True], ids=["by default", "dynamic"])
def test_a_sampler(dynamic: bool | None) -> None:
    eager, compiled = Sampler(), Sampler()
    compiled.load_state_dict(eager.state_dict())
    fast = fxstack.compile(compiled, dynamic=dynamic)
    x = y = torch.randn(1, 4, 8, 8)
    with torch.no_grad():
        for step in range(STEPS):
            x, y = eager(x, step), fast(y, step)
            torch.testing.assert_close(y, x, rtol=1e-4, atol=1e-5)
    assert _versions(fast) <= 2


def _schedule(step: int) -> tuple[float, float]:
    """Rate and momentum: a warm-up, then a cosine; the momentum the other way round."""
    rate = 0.1 * min((step + 1) / 4, 0.5 * (1 + math.cos(math.pi * step / STEPS)))
    return rate, 0.95 - rate


def _training(compile: Callable[[Any], Any]) -> tuple[list[Tensor], Any]:
    torch.manual_seed(3)
    model = nn.Linear(6, 3)
    memory = [torch.zeros_like(p) for p in model.parameters()]

    def update(step: int) -> None:
        rate, momentum = _schedule(step)
        for parameter, kept in zip(model.parameters(), memory, strict=True):
            assert parameter.grad is not None
            kept.mul_(momentum).add_(parameter.grad, alpha=1 - momentum)
            parameter.sub_(kept, alpha=rate / (1 - momentum ** (step + 1)))

    run = compile(torch.no_grad()(update))
    for step in range(STEPS):
        model.zero_grad()
        F.leaky_relu(model(torch.randn(5, 6))).square().sum().backward()
        run(step)
    return [p.detach() for p in model.parameters()], run


def test_a_schedule_of_rate_and_momentum() -> None:
    expected, _ = _training(lambda function: function)
    found, fast = _training(fxstack.compile)
    torch.testing.assert_close(found, expected)
    assert _versions(fast) <= 4  # the warm-up, the cosine, and the first round's numbers


CONVERTED: dict[str, Callable[[Tensor, float], Tensor]] = {
    "clamp": lambda x, a: x.clamp(min=a),
    "full": lambda x, a: torch.full((2,), a),
    "full of half": lambda x, a: torch.full((2,), a, dtype=torch.float16),
    "full of integers": lambda x, a: torch.full((2,), a, dtype=torch.int32),
    "full_like": torch.full_like,
    "new_full": lambda x, a: x.new_full((2,), a),
    "fill_": lambda x, a: x.clone().fill_(a),
    "fill_ of integers": lambda x, a: torch.zeros(2, dtype=torch.int8).fill_(a),
    "masked_fill": lambda x, a: x.masked_fill(x > 0, a),
    "where": lambda x, a: torch.where(x > 0, x, a),
    "where of half": lambda x, a: torch.where(x > 0, x.half(), a),
    "leaky_relu": F.leaky_relu,
    "threshold": lambda x, a: F.threshold(x, 0.1, a),
    "hardtanh": lambda x, a: F.hardtanh(x, -a, a),
    "alpha": lambda x, a: torch.add(x, x, alpha=a),
    "alpha of half": lambda x, a: torch.sub(x.half(), x.half(), alpha=a),
    "value": lambda x, a: torch.addcmul(x, x, x, value=a),
    "lerp": lambda x, a: x.lerp(x + 1, a),
    "scalar_tensor": lambda x, a: torch.scalar_tensor(a),
}
"""Operations that convert their number to a tensor's dtype, and refuse it if it is too large for that."""


def _said(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    except (RuntimeError, ValueError) as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("name", CONVERTED)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_numbers_that_are_too_large_for_a_dtype(name: str, backend: str) -> None:
    fast = fxstack.compile(CONVERTED[name], backend=backend)
    x = torch.tensor([1.5, -2.0, 0.0, 3.0])
    for a in (0.5, 0.75, 2.5, 1e300, 7e4, -1.5, math.inf, -1e39, math.nan, 3e9, 0.25, 100.0):
        expected, found = _said(CONVERTED[name], x, a), _said(fast, x, a)
        if isinstance(expected, Tensor):
            torch.testing.assert_close(found, expected, equal_nan=True)
        else:
            assert found == expected


TABLE = torch.linspace(0.05, 1, 50)
SIGMAS = numpy.linspace(0.05, 1, 50)


def from_tables(x: Tensor, step: int) -> Tensor:
    after = SIGMAS[step - 2] if step >= 5 else 1.0
    return x * TABLE[step] + numpy.sqrt(1 - SIGMAS[step]) * x - after * x[:, step % 4, None]


def into_a_cache(x: Tensor, step: int) -> Tensor:
    cache = torch.zeros(50, 6, dtype=x.dtype)
    cache[step] = x[0]
    cache[[step - 1, 0], 1:] += x[:2, 1:]
    return cache[step - 1 : step + 1] * 2


def of_counts(x: Tensor, step: int) -> Tensor:
    count = (x > 0).sum().item()
    return x * (count / x.numel()) + 0.5 * count + x.sum().item() / (count + step)


@pytest.mark.parametrize("program", [from_tables, into_a_cache, of_counts])
@pytest.mark.parametrize("mode", [None, "strict"])
def test_elements_by_a_step_and_quotients_of_counts(program: Callable[..., Tensor], mode: str | None) -> None:
    fast = fxstack.compile(program, mode=mode)
    torch.manual_seed(0)
    for step in (40, 30, 48, 17, 9, 23):
        x = torch.randn(4, 6)
        torch.testing.assert_close(fast(x, step), program(x, step))
        leaf, other = (x.clone().requires_grad_() for _ in range(2))
        fast(leaf, step).sum().backward()
        program(other, step).sum().backward()
        torch.testing.assert_close(leaf.grad, other.grad)
    assert _versions(fast) == 4  # a first one and one for all steps, with gradients and without


def every(x: Tensor, step: int) -> Tensor:
    return x[::step] * 2


def every_in_both(x: Tensor, step: int) -> Tensor:
    part = x[1:-1:step, ::step]
    return (part.t() @ part) + x[step::step].sum()


def written_in_steps(x: Tensor, step: int) -> Tensor:
    y = x * 1
    y[::step, 1 :: step + 1] += 3
    return y.cumsum(0)


@pytest.mark.parametrize("program", [every, every_in_both, written_in_steps])
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_slices_by_a_step(
    program: Callable[..., Tensor], backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    fast = fxstack.compile(program, backend=backend)
    torch.manual_seed(0)
    for step, rows in ((3, 24), (4, 24), (5, 24), (6, 29), (7, 31), (2, 26)):
        leaf = torch.randn(rows, 12, dtype=torch.float64, requires_grad=True)
        other = leaf.detach().clone().requires_grad_()
        result, expected = fast(leaf, step), program(other, step)
        torch.testing.assert_close(result, expected)
        assert result.stride() == expected.stride()
        result.sin().sum().backward()
        expected.sin().sum().backward()
        torch.testing.assert_close(leaf.grad, other.grad)
    assert _versions(fast) == 3  # a first one, one for other steps, one for other sizes
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def backwards(x: Tensor, step: int) -> Tensor:
    return x[::step] * 2


def test_a_step_that_torch_refuses() -> None:
    fast = fxstack.compile(backwards, backend="eager")
    for step in (2, 3, 0, -1, 4, -2, 1):
        if step > 0:
            assert torch.equal(fast(torch.arange(9.0), step), backwards(torch.arange(9.0), step))
        else:
            with pytest.raises(ValueError, match="step") as expected:
                backwards(torch.arange(9.0), step)
            with pytest.raises(ValueError, match="step") as refused:
                fast(torch.arange(9.0), step)
            assert str(refused.value) == str(expected.value)


ONES = torch.ones(4, 4)
READ_OUT_OF_TENSORS: list[Callable[[Tensor, float], Tensor]] = [
    lambda x, a: F.elu(x, a),
    lambda x, a: F.elu(x, alpha=a) * F.celu(x, a),
    lambda x, a: torch.celu(x, a),
    lambda x, a: F.softplus(x * 9, a),
    lambda x, a: F.softplus(x * 9, beta=a, threshold=3 * a),
    lambda x, a: F.softplus(x * 200, threshold=70 * a),
    lambda x, a: F.softshrink(x, a / 4),
    lambda x, a: torch.addmm(x, x, ONES, alpha=a),
    lambda x, a: torch.addmm(x[0], x, ONES, beta=a, alpha=2),
    lambda x, a: x.t().addmm(ONES, x.t(), beta=1 - a, alpha=a),
    lambda x, a: torch.addmv(x[:, 0], x, ONES[0], alpha=a),
    lambda x, a: torch.baddbmm(x[None], x[None], ONES[None], beta=0, alpha=a),
    lambda x, a: torch.addbmm(x, x[None], ONES[None], beta=a),
    lambda x, a: torch.addr(x, x[:, 0], x[0], alpha=a),
    lambda x, a: x.abs() ** a + torch.pow(2 + x.abs(), -a) + (1 + x.abs()).pow_(a),
    lambda x, a: (torch.arange(4) ** a) * x,
    lambda x, a: torch.index_add(x, 0, torch.tensor([0, 2]), x[:2], alpha=a).index_add_(
        1, torch.tensor([3]), x[:, :1], alpha=-a
    ),
    lambda x, a: (
        torch.full_like(x, a).scatter_(1, torch.tensor([[0], [3]]), 1 - a)
        * x.scatter(0, torch.tensor([[1, 2]]), a)
    ),
    lambda x, a: torch.norm(x, a) + x.norm(a, 1, keepdim=True) + torch.linalg.vector_norm(x, a, 0),
    lambda x, a: F.normalize(x, a, 0) * F.normalize(x, dim=1, eps=a),
    lambda x, a: torch.dist(x, x * 2, a) * torch.renorm(x, a, 0, 1.5) + torch.renorm(x, 3, 1, a),
    lambda x, a: torch.histc(x.detach(), 5, -a, max=2 * a) * x[:1, :1],
]


@pytest.mark.parametrize("number", range(len(READ_OUT_OF_TENSORS)))
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_numbers_that_torch_reads_out_of_tensors(number: int, backend: str) -> None:
    program = READ_OUT_OF_TENSORS[number]
    fast = fxstack.compile(program, backend=backend, fullgraph=True)
    torch.manual_seed(number)
    edges = torch.tensor([math.inf, -math.inf, 0.0, -0.0])
    for a in (0.5, 1.5, 2.25, 1.0, 0.7):
        x = torch.cat([torch.randn(4, 4), edges[:, None].expand(4, 4) if number < 7 else torch.randn(4, 4)])
        x = x[:4] if number == 9 else x
        leaf, other = (x.clone().requires_grad_() for _ in range(2))
        result, expected = fast(leaf, a), program(other, a)
        assert result.stride() == expected.stride()
        result.sum().backward()
        expected.sum().backward()
        assert leaf.grad is not None
        assert other.grad is not None
        if backend == "eager":
            assert torch.equal(result.nan_to_num(7), expected.nan_to_num(7))
            assert torch.equal(leaf.grad.nan_to_num(7), other.grad.nan_to_num(7))
        torch.testing.assert_close(result, expected, equal_nan=True)
        torch.testing.assert_close(leaf.grad, other.grad, equal_nan=True)
    assert _versions(fast) == 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_numbers_that_torch_refuses_to_read(backend: str) -> None:
    programs: list[Callable[[Tensor, float], Tensor]] = [
        *(F.softshrink, F.celu, F.elu, torch.pow, torch.norm),
        lambda x, a: torch.renorm(x[None], 2.0, 0, a),
        lambda x, a: torch.histc(x, 4, 0.25, a),
    ]
    for program in programs:
        fast = fxstack.compile(lambda x, a, program=program: program(x, a) + 1, backend=backend)
        for a in (0.5, 0.7, -1.0, 0.0, 1e300, 0.9, math.nan, math.inf, 0.3):
            outcomes = []
            for call in (lambda x, a, program=program: program(x, a) + 1, fast):
                try:
                    outcomes.append(str(call(torch.linspace(-2, 2, 5), a)))
                except (RuntimeError, ZeroDivisionError) as error:
                    outcomes.append(f"{type(error)} {error}")
            assert outcomes[0] == outcomes[1], a
