"""Histories of inputs that a result does not depend on: a backward of that result leaves them alone."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch


class Noting(torch.autograd.Function):
    """Adds one; its backward is written down."""

    seen: list[Any] = []

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x + 1

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        Noting.seen.append(gradient.tolist())
        return gradient * 2


def _program(t: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    h = t.sin()
    return h * 2, x.cos(), h * x


def _inputs() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ones(2, requires_grad=True), torch.full((2,), 0.5, requires_grad=True)


def _both(compiled: Any, use: Any) -> tuple[Any, Any]:
    """What ``use`` does and what it returns, with the program in eager and compiled."""
    found = []
    for function in (_program, compiled(_program)):
        Noting.seen = []
        y, x = _inputs()
        returned = use(y, x, function(Noting.apply(y), x))
        found.append((Noting.seen, returned, y.grad, x.grad))
    return found[0], found[1]


USES = {
    "independent": lambda y, x, r: r[1].sum().backward(),
    "dependent": lambda y, x, r: r[0].sum().backward(),
    "all": lambda y, x, r: (r[0] + r[1] + r[2]).sum().backward(),
    "one after the other": lambda y, x, r: [t.sum().backward(retain_graph=True) for t in r][:0],
    "only the history": lambda y, x, r: torch.autograd.grad((r[0] * r[2]).sum(), y)[0].tolist(),
    "only the history, kept": lambda y, x, r: [
        torch.autograd.grad(r[i].sum(), y, retain_graph=True)[0].tolist() for i in (0, 2, 0)
    ],
    "only the other": lambda y, x, r: torch.autograd.grad(r[2].sum() + r[1].sum(), x)[0].tolist(),
    "second derivative": lambda y, x, r: torch.autograd.grad(
        torch.autograd.grad((r[0] * r[1]).sum(), y, create_graph=True)[0].sum(), [y, x]
    )[1].tolist(),
    "hooks": lambda y, x, r: (
        [t.register_hook(lambda g, n=n: Noting.seen.append((n, g.tolist()))) for n, t in enumerate(r)],
        (r[1] + r[2]).sum().backward(),
    )[1],
}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_as_in_eager(compiled: Any, use: Any) -> None:
    eager, fast = _both(compiled, use)
    assert str(eager) == str(fast)


def test_a_second_backward_is_refused(compiled: Any) -> None:
    y, x = _inputs()
    results = compiled(_program)(Noting.apply(y), x)
    torch.autograd.grad(results[0].sum(), y)
    with pytest.raises(RuntimeError, match="a second time"):
        torch.autograd.grad(results[0].sum(), y)


def test_results_used_in_another_thread(compiled: Any) -> None:
    """Nodes that another thread makes count from their own beginning, so that the engine takes them in any order."""
    y, x = _inputs()
    for _ in range(100):
        x.sin()
    results = compiled(_program)(Noting.apply(y), x)
    losses: list[torch.Tensor] = []
    thread = threading.Thread(
        target=lambda: losses.append((results[0] * results[1].exp() * results[2]).sum())
    )
    thread.start()
    thread.join()
    losses[0].backward()
    y2, x2 = _inputs()
    plain = _program(y2 + 1, x2)
    (plain[0] * plain[1].exp() * plain[2]).sum().backward()
    torch.testing.assert_close(y.grad, y2.grad * 2, rtol=0, atol=0)
    torch.testing.assert_close(x.grad, x2.grad, rtol=0, atol=0)


def test_inputs_that_are_gone_are_made_again(compiled: Any) -> None:
    first = compiled(lambda y: (y.exp(), y * 3))
    second = compiled(lambda t, x: (t.sin() * x, x.cos()))

    def third(y: torch.Tensor, x: torch.Tensor, first: Any, second: Any) -> torch.Tensor:
        results = second(first(y)[0], x)
        (g,) = torch.autograd.grad(results[0].sum(), y, create_graph=True)
        return torch.autograd.grad(g.sum(), y)[0]

    y, x = _inputs()
    plain = third(y, x, lambda y: (y.exp(),), lambda t, x: (t.sin() * x, x.cos()))
    torch.testing.assert_close(third(y, x, first, second), plain, rtol=0, atol=0)


def test_only_inputs_with_a_history_that_some_results_lead_to(compiled: Any) -> None:
    """The input that is written to gets no gradient, and each other is reached from one result only."""

    def program(a: torch.Tensor, b: torch.Tensor, written: torch.Tensor) -> tuple[torch.Tensor, ...]:
        with torch.no_grad():
            written.add_(1)
        return a.sin(), b.cos(), written

    found = []
    for function in (program, compiled(program)):
        leaf, written = torch.ones(2, requires_grad=True), torch.zeros(2, requires_grad=True)
        one, other, same = function(leaf * 2, leaf * 3, written)
        other.sum().backward()
        assert same is written
        found.append((one.tolist(), other.tolist(), written.tolist(), written._version, leaf.grad.tolist()))
    assert found[0] == found[1]
