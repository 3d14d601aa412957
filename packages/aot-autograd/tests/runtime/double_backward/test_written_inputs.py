"""Programs that write to their inputs run again from what these were before."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from aot_autograd.runtime.hooks.freed_tensors import CAN_BE_FREED

NEEDS_PLACES = pytest.mark.skipif(not CAN_BE_FREED, reason="torch tells no place in autograd's graph")


def _scaled(z: torch.Tensor, x: torch.Tensor) -> Any:
    z.mul_(x)
    return z.exp()


def _doubled(z: torch.Tensor) -> Any:
    z.mul_(2)
    return z.exp()


def _rectified(z: torch.Tensor, x: torch.Tensor) -> Any:
    torch.relu_(z)
    return z.exp() * x


def _rectified_after_it_was_read(z: torch.Tensor, x: torch.Tensor) -> Any:
    before = z * 2
    torch.relu_(z)
    return z.exp() * x, before.cosh()


def _overwritten(z: torch.Tensor, x: torch.Tensor) -> Any:
    z.copy_(x.sin())
    return z * z, z.sum()


def _in_part(z: torch.Tensor, x: torch.Tensor) -> Any:
    before = z.tanh()
    z[1:] = x[:-1].sin()
    return before.exp(), z[:2]


def _twice(z: torch.Tensor, x: torch.Tensor) -> Any:
    z.add_(x)
    first = z.exp()
    z.sub_(x * 3)
    return first, z.cosh()


def _without_gradients(z: torch.Tensor, x: torch.Tensor) -> Any:
    result = (z * x).exp()
    with torch.no_grad():
        z.add_(x)
    return result


PROGRAMS = (
    _scaled,
    _rectified,
    _rectified_after_it_was_read,
    _overwritten,
    _in_part,
    _twice,
    _without_gradients,
)


def _sum(results: Any) -> torch.Tensor:
    total: torch.Tensor = sum(r.sum() for r in (results if isinstance(results, tuple) else (results,)))
    return total


def _identity(function: Any) -> Any:
    return function


@pytest.mark.parametrize("look", ["nobody", "before", "after"])
@pytest.mark.parametrize("count", [3, pytest.param(20000, marks=NEEDS_PLACES)])
@pytest.mark.parametrize("program", PROGRAMS[:-1])
def test_derivatives_of_inputs_that_are_written(compiled: Any, program: Any, count: int, look: str) -> None:
    """Small ones are copied, large ones are made again by the compiled function that made them."""
    found = []
    for wrap in (_identity, compiled):
        seen: list[Any] = []

        def hook(gradient: torch.Tensor, seen: list[Any] = seen) -> torch.Tensor:
            seen.append(gradient.detach().clone())
            return gradient * 2

        x = torch.linspace(0.1, 1, count, dtype=torch.float64).requires_grad_()
        z = wrap(torch.sinh)(x)
        if look == "before":
            z.register_hook(hook)
        results = wrap(program)(z, x)
        if look == "after":
            z.register_hook(hook)
        (first,) = torch.autograd.grad(_sum(results) + z.sum(), x, create_graph=True)
        (second,) = torch.autograd.grad((first * first).sum(), x, create_graph=True)
        second.sum().backward()
        found.append([z, first, second, x.grad, *seen])
    torch.testing.assert_close(found[1], found[0])


@pytest.mark.parametrize("count", [3, 20000])
@pytest.mark.parametrize("program", PROGRAMS)
def test_derivatives_of_inputs_that_eager_made(compiled: Any, program: Any, count: int) -> None:
    found = []
    for wrap in (_identity, compiled):
        x = torch.linspace(0.1, 1, count, dtype=torch.float64).requires_grad_()
        results = wrap(program)(x.sinh(), x)  # nobody else holds the input
        if program is _without_gradients:
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                _sum(results).backward()
            return
        (first,) = torch.autograd.grad(_sum(results), x, create_graph=True)
        found.append([first, *torch.autograd.grad((first * first).sum(), x)])
    torch.testing.assert_close(found[1], found[0])


@NEEDS_PLACES
def test_what_changes_nothing_the_second_time_needs_no_copy(compiled: Any) -> None:
    x = torch.linspace(-1, 1, 20000, dtype=torch.float64).requires_grad_()
    z = x.sinh()
    result = compiled(_rectified)(z, x)
    (before,) = z.grad_fn.remembered.before
    assert before.known.alias.data_ptr() == z.data_ptr()
    result.sum().backward(retain_graph=True)
    with torch.no_grad():
        z.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation|AOT301"):
        torch.autograd.grad(torch.autograd.grad(result.sum(), x, create_graph=True)[0].sum(), x)


@pytest.mark.parametrize("history", [False, True])
def test_inputs_that_take_another_form(compiled: Any, history: bool) -> None:
    def program(z: torch.Tensor, x: torch.Tensor) -> Any:
        z.t_()
        return (z @ x).exp()

    found = []
    for wrap in (_identity, compiled):
        x = torch.linspace(0.1, 1, 12, dtype=torch.float64).view(3, 4).requires_grad_()
        z = x.sinh() if history else x.detach().sinh()
        result = wrap(program)(z, x)
        (first,) = torch.autograd.grad(result.sum(), x, create_graph=True)
        found.append([z, first, *torch.autograd.grad((first * first).sum(), x)])
    torch.testing.assert_close(found[1], found[0])


@pytest.mark.parametrize("keep", [False, True])
def test_a_large_copy_lives_until_the_backward(compiled: Any, keep: bool) -> None:
    x = torch.linspace(0.1, 1, 20000, dtype=torch.float64).requires_grad_()
    z = x.sinh()
    result = compiled(_doubled)(z)
    (before,) = z.grad_fn.remembered.before
    assert before.known.numel() == 20000
    result.sum().backward(retain_graph=keep)
    (before,) = z.grad_fn.remembered.before
    assert isinstance(before.known, torch.Tensor) is keep


def test_a_copy_that_does_not_fit_is_not_made(compiled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def clone(tensor: torch.Tensor) -> torch.Tensor:
        raise torch.OutOfMemoryError

    x = torch.linspace(0.1, 1, 20000, dtype=torch.float64).requires_grad_()
    z = x.sinh()
    program = compiled(_doubled)
    program(x.sinh())
    with monkeypatch.context() as patched:
        patched.setattr(torch.Tensor, "clone", clone)
        result = program(z)
    (gradient,) = torch.autograd.grad(result.sum(), x, create_graph=True)
    torch.testing.assert_close(gradient, 2 * x.cosh() * (2 * x.sinh()).exp())
    with pytest.raises(RuntimeError, match=r"(?s)AOT301.*is gone"):
        gradient.sum().backward()


def test_parameters_that_are_updated_are_not_copied(compiled: Any) -> None:
    """The program has differentiated the loss, and nobody can do so again."""

    def step(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        loss = (w * x).exp().sum()
        (gradient,) = torch.autograd.grad(loss, w)
        with torch.no_grad():
            w.sub_(gradient, alpha=0.1)
        return loss

    w = torch.ones(20000, dtype=torch.float64, requires_grad=True)
    loss = compiled(step)(w, torch.ones(20000, dtype=torch.float64))
    kept = [] if loss.grad_fn is None else loss.grad_fn.remembered.before
    assert not any(isinstance(one.known, torch.Tensor) for one in kept)


def test_a_large_leaf_that_is_overwritten(compiled: Any) -> None:
    """What it held does not matter, and the gradient leads to the leaf."""

    def program(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            w.copy_(x)
        return w.exp()

    found = []
    for wrap in (_identity, compiled):
        x = torch.linspace(0, 1, 20000, dtype=torch.float64)
        w = torch.ones(20000, dtype=torch.float64, requires_grad=True)
        (first,) = torch.autograd.grad(wrap(program)(w, x).sum(), w, create_graph=True)
        first.sum().backward()
        found.append([first, w, w.grad])
    torch.testing.assert_close(found[1], found[0])


def test_results_that_use_buffers_that_are_written(compiled: Any) -> None:
    def program(x: torch.Tensor, mean: torch.Tensor, var: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
        total.add_(1)
        return torch.nn.functional.batch_norm(x, mean, var, training=True).tanh() * mean * total

    found = []
    for wrap in (_identity, compiled):
        x = torch.linspace(-1, 1, 12, dtype=torch.float64).pow(3).view(4, 3).requires_grad_()
        buffers = torch.zeros(3, 3, dtype=torch.float64).unbind()
        (first,) = torch.autograd.grad(wrap(program)(x, *buffers).sum(), x, create_graph=True)
        found.append([first, *torch.autograd.grad((first * first).sum(), x), *buffers])
    torch.testing.assert_close(found[1], found[0])


def test_a_leaf_that_is_written_without_gradients(compiled: Any) -> None:
    """Eager has saved a part that is not overwritten: the derivative leads to the leaf, from what it held."""

    def program(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        result = (w + x).exp()
        with torch.no_grad():
            w.mul_(5)
        return result

    found = []
    for wrap in (_identity, compiled):
        w = torch.linspace(0, 1, 3, dtype=torch.float64).requires_grad_()
        x = torch.linspace(1, 2, 3, dtype=torch.float64).requires_grad_()
        (first,) = torch.autograd.grad(wrap(program)(w, x).sum(), w, create_graph=True)
        first.sum().backward()
        found.append([first, w, w.grad, x.grad])
    torch.testing.assert_close(found[1], found[0])


def test_what_an_overwritten_input_held_is_not_needed(compiled: Any) -> None:
    """Nobody else holds it, and it is gone after the call."""

    def program(buffer: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        buffer.copy_(x.detach() * 2)
        return buffer[:2].clone() * x[:2]

    found = []
    for wrap in (_identity, compiled):
        x = torch.linspace(0.1, 1, 3, dtype=torch.float64).requires_grad_()
        result = wrap(program)(torch.zeros(3, dtype=torch.float64), x)
        (first,) = torch.autograd.grad((result * result).sum(), x, create_graph=True)
        found.append([first, *torch.autograd.grad((first * first).sum(), x)])
    torch.testing.assert_close(found[1], found[0])


@pytest.mark.parametrize("count", [3, 20000])
@pytest.mark.parametrize("is_leaf", [False, True])
def test_an_earlier_function_runs_again_from_the_copy_of_a_later_one(
    compiled: Any, is_leaf: bool, count: int
) -> None:
    """Eager's formula for ``tanh`` reads its result only, so that the write does not matter there."""

    def write(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            x[0].add_(1)
        return x * 2

    found = []
    for wrap in (_identity, compiled):
        leaf = torch.linspace(0.1, 1, count, dtype=torch.float64).requires_grad_()
        x = leaf if is_leaf else leaf * 1
        first = wrap(torch.tanh)(x)
        second = wrap(write)(x)
        (gradient,) = torch.autograd.grad(first.sum() + second.sum(), leaf, create_graph=True)
        found.append([gradient, *torch.autograd.grad(gradient.pow(2).sum(), leaf)])
        del second
    torch.testing.assert_close(found[1], found[0])
