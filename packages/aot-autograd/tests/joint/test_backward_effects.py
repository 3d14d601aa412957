"""Backwards with effects: what writes runs as it is written, unknown operators run as often as in eager."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

LOG: list[float] = []


@pytest.fixture(scope="module", autouse=True)
def _operators() -> Iterator[None]:
    library = torch.library.Library("backward_effects", "DEF")

    def tell(x: torch.Tensor) -> torch.Tensor:
        LOG.append(float(x.sum()))
        return x.clone()

    library.define("tell(Tensor x) -> Tensor")
    library.impl("tell", tell, "CompositeExplicitAutograd")
    yield
    library._destroy()


class Counting(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        ctx.seen = seen
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        ctx.seen.add_(1)
        return gradient * 2, None


class Scaling(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient.mul_(2)


class Telling(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        torch.ops.backward_effects.tell(gradient)
        torch.ops.backward_effects.tell(gradient)
        return gradient * 2


@pytest.mark.parametrize("program", [Counting.apply, lambda x, seen: Scaling.apply(x) * seen.exp()])
def test_writes_run_as_they_are_written(compiled: Any, program: Any) -> None:
    x, seen = torch.ones(2, requires_grad=True), torch.zeros(())
    expected_x, expected_seen = torch.ones(2, requires_grad=True), torch.zeros(())
    function = compiled(program)
    for _ in range(2):
        function(x, seen).sum().backward()
        program(expected_x, expected_seen).sum().backward()
    assert x.grad is not None
    assert expected_x.grad is not None
    assert torch.equal(x.grad, expected_x.grad)
    assert torch.equal(seen, expected_seen)


def test_unused_calls_run_each_time(compiled: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    result = compiled(Telling.apply)(x)
    LOG.clear()
    result.sum().backward()
    assert LOG == [2.0, 2.0]
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0]


def test_calls_that_no_gradient_reaches_do_not_run(compiled: Any) -> None:
    x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
    _, other = compiled(lambda x, y: (Telling.apply(x), y * 3))(x, y)
    LOG.clear()
    other.sum().backward()
    assert LOG == []
    assert x.grad is None
