from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

REFUSED = r"(?s)AOT301.*{}.*without the compiler"


def D(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes, dtype=torch.float64, requires_grad=True)


def derivatives(function: Callable[..., Any], x: torch.Tensor, order: int) -> list[torch.Tensor]:
    found = [function(x).sum()]
    for _ in range(order):
        found.append(torch.autograd.grad(found[-1].sum(), x, create_graph=True)[0])
    return found


def test_derivatives_of_any_order_are_eagers(compiled: Any) -> None:
    x = D(4)

    def function(x: torch.Tensor) -> torch.Tensor:
        return (x**4 + x.sin() * x).exp().log()

    expected, found = derivatives(function, x, 4), derivatives(compiled(function), x, 4)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_a_gradient_penalty_reaches_the_weights(compiled: Any) -> None:
    x, w = D(5, 3), D(3, 1)

    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x @ w).square()

    found = []
    for run in (function, compiled(function)):
        (slope,) = torch.autograd.grad(run(x, w).sum(), x, create_graph=True)
        found.append(torch.autograd.grad((slope.norm(dim=1) - 1).square().mean(), [x, w]))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_an_input_computed_from_another_is_not_differentiated_through(compiled: Any) -> None:
    x = D(3)

    def function(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a * b.exp()

    run, found = compiled(function), []
    for one in (function, run):
        b = x.sin()
        (first,) = torch.autograd.grad(one(x, b).sum(), x, create_graph=True)
        found.append((first, *torch.autograd.grad(first.sum(), x)))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_gradients_depend_on_what_arrives(compiled: Any) -> None:
    x, weight = D(3), D(3)
    run = compiled(lambda x: x * x)
    (gradient,) = torch.autograd.grad(run(x), x, weight, create_graph=True)
    (found,) = torch.autograd.grad(gradient.sum(), weight)
    torch.testing.assert_close(found, 2 * x)


def test_a_result_that_is_not_used_has_no_part(compiled: Any) -> None:
    x = D(3)
    used, _ = compiled(lambda x: (x**3, x.sin()))(x)
    (first,) = torch.autograd.grad(used.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    torch.testing.assert_close(second, 6 * x)


@pytest.mark.parametrize(
    "function, why",
    [
        pytest.param(lambda x: torch.dropout(x.exp(), 0.5, True), "random", id="random"),
        pytest.param(lambda x: x.exp().view(-1)[:2], "share memory", id="view"),
    ],
)
def test_what_cannot_be_repeated_is_refused_when_differentiated(
    function: Any, why: str, compiled: Any
) -> None:
    x = D(3)
    (gradient,) = torch.autograd.grad(compiled(function)(x).sum(), x, create_graph=True)
    assert gradient.requires_grad
    with pytest.raises(RuntimeError, match=REFUSED.format(why)):
        gradient.sum().backward()


def test_a_program_that_writes_to_an_input_is_refused(compiled: Any) -> None:
    x, total = D(3), torch.zeros(3, dtype=torch.float64)

    def function(x: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
        total.add_(x.detach())
        return x.exp()

    result = compiled(function)(x, total)
    (gradient,) = torch.autograd.grad(result.sum(), x, create_graph=True)
    torch.testing.assert_close(gradient, x.exp())
    with pytest.raises(RuntimeError, match=REFUSED.format("writes to its inputs")):
        gradient.sum().backward()


def test_an_input_that_changed_or_is_gone_is_refused(compiled: Any) -> None:
    run = compiled(lambda x, shift: x.exp() + shift)
    x, shift = D(3), torch.ones(3, dtype=torch.float64)
    result = run(x, shift)
    shift.add_(1)
    (gradient,) = torch.autograd.grad(result.sum(), x, create_graph=True, retain_graph=True)
    with pytest.raises(RuntimeError, match=REFUSED.format("changed in place")):
        gradient.sum().backward()
    del shift
    (gradient,) = torch.autograd.grad(result.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=REFUSED.format("gone")):
        gradient.sum().backward()


def test_memory_is_not_kept_for_it(compiled: Any) -> None:
    import weakref

    x, shift = D(3), torch.ones(3, dtype=torch.float64)
    result = compiled(lambda x, shift: x.exp() + shift)(x, shift)
    alive = weakref.ref(shift)
    del shift
    assert alive() is None
    result.sum().backward()
