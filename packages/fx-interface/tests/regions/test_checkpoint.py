"""A checkpointed call, run as it is: same results and gradients, less kept, one second run."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fx_interface.regions import checkpointed


class Counted:
    """A callable that counts its calls."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.calls = 0

    def __call__(self, *args: Any) -> Any:
        self.calls += 1
        return self.function(*args)


def chain(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = (x @ w).sin().exp()
    return torch.nn.functional.dropout(y, 0.5).tanh(), y.sum()


def given() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(3)
    return torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)


def gradients(call: Any) -> list[torch.Tensor]:
    args = given()
    first, second = call(*args)
    (first.sum() * second).backward()
    return [first.detach(), second.detach(), *[t.grad for t in args if t.grad is not None], torch.rand(1)]


def test_values_gradients_and_random_numbers_are_those_of_a_plain_call() -> None:
    body = Counted(chain)
    assert all(map(torch.equal, gradients(chain), gradients(lambda *args: checkpointed(body, *args))))
    assert body.calls == 2


def test_nothing_is_kept_but_the_arguments() -> None:
    sizes: list[int] = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        sizes.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        checkpointed(chain, *given())
    assert not sizes


def test_without_gradients_it_is_a_plain_call() -> None:
    body = Counted(chain)
    with torch.no_grad():
        first, _ = checkpointed(body, *given())
    assert not first.requires_grad
    assert body.calls == 1


def test_a_second_backward_runs_it_again() -> None:
    body = Counted(chain)
    x, w = given()
    first, _ = checkpointed(body, x, w)
    one = torch.autograd.grad(first.sum(), x, retain_graph=True)[0]
    two = torch.autograd.grad(first.sum(), x)[0]
    assert torch.equal(one, two)
    assert body.calls == 3


def test_second_derivatives() -> None:
    x = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: checkpointed(lambda x: (x.sin().exp(),), x)[0], x)


def test_the_autocast_of_the_call_holds_in_the_second_run() -> None:
    x, w = given()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (y,) = checkpointed(lambda x, w: ((x @ w).sin(),), x, w)
    assert y.dtype == torch.bfloat16
    y.float().sum().backward()
    x2, w2 = given()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y2 = (x2 @ w2).sin()
    y2.float().sum().backward()
    assert x.grad is not None
    assert x2.grad is not None
    assert torch.equal(x.grad, x2.grad)


def test_arguments_that_were_overwritten_are_refused() -> None:
    x, w = given()
    first, _ = checkpointed(chain, x, w, saved=(0,))
    with torch.no_grad():
        w.add_(1)
    torch.autograd.grad(first.sum(), x, retain_graph=True)
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(first.sum(), x)


def test_hooks_on_saved_tensors_see_the_arguments() -> None:
    x, w = given()
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor * 2, lambda tensor: tensor / 2):
        first, _ = checkpointed(chain, x, w, saved=(0, 1))
    torch.manual_seed(3)
    torch.randn(4, 4), torch.randn(4, 4)
    expected = chain(x, w)[0]
    found = torch.autograd.grad(first.sum(), (x, w))
    assert all(map(torch.equal, found, torch.autograd.grad(expected.sum(), (x, w))))
