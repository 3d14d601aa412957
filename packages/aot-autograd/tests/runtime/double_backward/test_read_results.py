"""Derivatives that read a function's results lead to these."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch

from aot_autograd.runtime.hooks.freed_tensors import CAN_BE_FREED
from fx_interface.regions import differentiable

X = torch.tensor([[0.5, -1.0, 2.0], [0.25, 1.0, -0.5]], dtype=torch.float64)
WEIGHT = torch.tensor([1.0, 5.0, 2.0], dtype=torch.float64)

Program = Callable[..., Any]
NEEDS_PLACES = pytest.mark.skipif(not CAN_BE_FREED, reason="torch tells the place of no tensor that is gone")


def _exp(x: torch.Tensor) -> Any:
    return x.exp(), x.sum()


def _softmax(x: torch.Tensor) -> Any:
    return x.softmax(-1), x.sin()


def _between(x: torch.Tensor) -> Any:
    first = x.exp()
    return first, (first * first).sum()


def _read_far_behind(x: torch.Tensor) -> Any:
    first = x.sin()
    return first, (first + 1).exp().sum()


def _two_between(x: torch.Tensor) -> Any:
    first = x.exp()
    second = first.tanh()
    return first, second, (second * first).sum()


def _view(x: torch.Tensor) -> Any:
    turned = x.exp().t()
    return turned, (turned * turned).sum()


def _broadcast(x: torch.Tensor) -> Any:
    return x[0].expand(50, 3).exp(), x.sum()


PROGRAMS = (_exp, _softmax, _between, _read_far_behind, _two_between, _view, _broadcast)


def _derivatives(program: Program, order: int, look: str) -> Any:
    """Gradients of each order, and what somebody has seen who looks at the first result."""
    x = X.clone().requires_grad_()
    seen: list[Any] = []
    first, *others = program(x * 1 if look == "history" else x)

    def hook(gradient: torch.Tensor) -> torch.Tensor:
        seen.append(gradient.detach().clone())
        return gradient * 2

    if look in ("hook", "late", "gone", "history"):
        first.register_hook(hook)
    elif look == "retain":
        first.retain_grad()
    loss = (
        (first.reshape(-1, 3) * WEIGHT).sum() + sum(t.sum() for t in others)
        if first.shape[-1] == 3
        else others[-1]
    )
    if look == "gone":
        del first
    found: list[Any] = [x] if look in ("gone", "history") else [x, first]
    gradient = loss
    for _ in range(order):
        (gradient,) = torch.autograd.grad(gradient.sum(), x, create_graph=True)
        gradient = gradient * WEIGHT
        found.append(gradient.detach())
    if look == "chosen":
        return found[2:], torch.autograd.grad(gradient.sum(), [first, x], allow_unused=True)
    gradient.sum().backward()
    kept = first.grad.detach() if look == "retain" else None
    return found[2:], x.grad, kept, seen


@pytest.mark.parametrize("look", ["hook", "retain", "chosen", "history"])
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("order", [1, 2])
def test_hooks_kept_and_chosen_gradients_are_eagers(
    compiled: Any, program: Program, look: str, order: int
) -> None:
    expected = _derivatives(program, order, look)
    torch.testing.assert_close(_derivatives(compiled(program), order, look), expected)


@pytest.mark.parametrize("program", [_exp, _softmax, _between, pytest.param(_view, marks=NEEDS_PLACES)])
def test_hooks_of_a_result_that_is_gone(compiled: Any, program: Program) -> None:
    expected = _derivatives(program, 1, "gone")
    torch.testing.assert_close(_derivatives(compiled(program), 1, "gone"), expected)


def _several(x: torch.Tensor) -> Any:
    first = x.sin()
    second = first * first.sum()
    return first[:1], first, second, (second + first).exp().sum()


def _twice_with_hooks(program: Program, gone: list[int]) -> list[Any]:
    x, seen = X.clone().requires_grad_(), []
    results = list(program(x))
    for number in gone:
        results[number].register_hook(lambda g, n=number: seen.append((n, g.detach().clone())) or g * 2)
    del results[:3]
    (gradient,) = torch.autograd.grad(results[0], x, create_graph=True)
    (again,) = torch.autograd.grad((gradient * gradient).sum() + results.pop(), x, create_graph=True)
    again.sum().backward()
    return [gradient, again, x.grad, *seen]


@NEEDS_PLACES
@pytest.mark.parametrize("gone", [[0], [1], [2], [0, 1, 2]])
def test_hooks_of_results_that_are_gone_and_not_saved(compiled: Any, gone: list[int]) -> None:
    """They are found in autograd's graph, once for each derivative, with all that arrives there."""
    expected = _twice_with_hooks(_several, gone)
    torch.testing.assert_close(_twice_with_hooks(compiled(_several), gone), expected)


@NEEDS_PLACES
def test_derivatives_of_any_order_lead_to_a_result_that_is_gone(compiled: Any) -> None:
    """Only derivatives hold what leads to it, and an input's history is reached from some results alone."""

    def program(x: torch.Tensor, y: torch.Tensor) -> Any:
        hidden = x.exp()
        return hidden, (hidden * y).sum()

    found = []
    for run in (program, compiled(program)):
        x, seen = X.clone().requires_grad_(), []
        y = X.flip(0).requires_grad_() * 2
        hidden, loss = run(x, y)
        hidden.register_hook(lambda g, seen=seen: seen.append(g.detach().clone()) or g * 2)
        del hidden
        (gradient,) = torch.autograd.grad(loss, x, create_graph=True)
        del loss
        for _ in range(3):
            (gradient,) = torch.autograd.grad((gradient * gradient).sum(), x, create_graph=True)
            seen.append(gradient.detach())
        found.append(seen)
    torch.testing.assert_close(found[1], found[0])


def test_a_result_with_hooks_is_freed(compiled: Any) -> None:
    """Its place in autograd's graph holds neither its memory nor what leads to it."""
    x = X.clone().requires_grad_()
    view, first, second, loss = compiled(_several)(x)
    handle = first.register_hook(lambda gradient: gradient * 2)
    alive = [weakref.ref(t) for t in (view, first, second, loss)] + [weakref.ref(loss.grad_fn)]
    gc.disable()
    try:
        del view, first, second
        assert [one() is None for one in alive] == [True, True, True, False, False]
        del loss
        assert all(one() is None for one in alive)
    finally:
        gc.enable()
    handle.remove()


def test_infinite_terms_meet_where_they_do_in_eager(compiled: Any) -> None:
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    found = []
    for run in (torch.sqrt, compiled(torch.sqrt)):
        result = run(x)
        (first,) = torch.autograd.grad((result * result).sum(), x, create_graph=True)
        found.append(torch.autograd.grad((first * first).sum(), x)[0].tolist())
    assert str(found[1]) == str(found[0])


def test_a_second_backward_is_refused_where_eager_refuses_it(compiled: Any) -> None:
    for run in (torch.exp, compiled(torch.exp)):
        x = X.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(run(x).sum(), x, create_graph=True)
        gradient.sum().backward()
        with pytest.raises(RuntimeError, match="second time"):
            gradient.sum().backward()


def test_what_reads_no_result_keeps_its_nodes(compiled: Any) -> None:
    x = X.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(compiled(lambda x: x.sin())(x).sum(), x, create_graph=True)
    assert gradient.grad_fn.name() != "_ThroughBackward"


def _power_of_product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    (product,) = differentiable(lambda x, y: (x * y, x, y), lambda g, x, y: (g * y, g * x), x, y, results=1)
    return product.exp()


def test_a_function_before_what_is_read_gets_no_zeros(compiled: Any) -> None:
    """The derivative that reads ``exp`` ends there; zeros for what is before it would be NaN where y is infinite."""
    found = []
    for run in (_power_of_product, compiled(_power_of_product)):
        x = torch.tensor([float("-inf"), 1.0], requires_grad=True)
        y = torch.tensor([float("-inf"), 0.5], requires_grad=True)
        first = torch.autograd.grad(run(x, y).square().sum(), [x, y], create_graph=True)
        second = torch.autograd.grad(first[0].square().sum() + first[1].square().sum(), [x, y])
        found.append([g.isinf().tolist() for g in (*first, *second)])
    assert found[0] == found[1] == [[True, False]] * 4


class _Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        return gradient * ctx.saved_tensors[0].exp()


def _once(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    made = _Once.apply(x)  # type: ignore[no-untyped-call]
    return x * made, made


def test_what_leads_to_no_chosen_tensor_is_not_differentiated(compiled: Any) -> None:
    found = []
    for run in (_once, compiled(_once)):
        x = X.clone().requires_grad_()
        (first,) = torch.autograd.grad(sum((r * r).sum() for r in run(x)), x, create_graph=True)
        with pytest.raises(RuntimeError, match="once_differentiable"):
            first.sum().backward(retain_graph=True)
        found.append([first, *torch.autograd.grad(first.sum(), x)])
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=0)


def _factor_beside_product(x: torch.Tensor) -> Any:
    first = x.sin()
    return first, first * x


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("program", [_factor_beside_product, _between, _two_between])
def test_what_a_hook_has_changed_is_differentiated_once(compiled: Any, program: Program, order: int) -> None:
    """It depends on the inputs itself, and leads to them by itself: not through what is computed with it, too."""
    found = []
    for run in (program, compiled(program)):
        x = X.clone().requires_grad_()
        first, *_, last = run(x)
        first.register_hook(lambda gradient: gradient * 2)
        gradient = last
        for _ in range(order + 1):
            (gradient,) = torch.autograd.grad(gradient.sum(), x, create_graph=True)
        found.append(gradient.detach())
    torch.testing.assert_close(found[1], found[0])
