"""A function with a backward of its own, run as it is."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fx_interface.regions import differentiable


def forward(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.exp(), x


def backward(gradient: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (gradient * x * 3,)


def test_the_backward_given_is_the_derivative() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (y,) = differentiable(forward, backward, x, results=1)
    assert torch.equal(y, x.exp())
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0, 6.0]


def test_numbers_are_saved_as_well() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (y,) = differentiable(lambda x, k: (x * k, k), lambda gradient, k: (gradient * k * 10,), x, 4, results=1)
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [40.0, 40.0]


def test_a_gradient_arrives_row_major_and_as_zeros_where_there_is_none() -> None:
    arrived: list[torch.Tensor] = []

    def two(x: torch.Tensor) -> Any:
        return x * 1, x * 2

    def back(first: torch.Tensor, second: torch.Tensor) -> Any:
        arrived.extend((first, second))
        return (first,)

    x = torch.ones(2, 3, requires_grad=True)
    one, _ = differentiable(two, back, x, results=2)
    one.sum().backward()
    assert [tensor.stride() for tensor in arrived] == [(3, 1), (3, 1)]
    assert arrived[1].eq(0).all()


def test_an_argument_written_to_is_the_result() -> None:
    x = torch.ones(3, requires_grad=True).clone()
    (y,) = differentiable(lambda x: (x.add_(1),), lambda gradient: (gradient * 7,), x, results=1, dirty=(0,))
    assert y is x
    (found,) = torch.autograd.grad(y.sum(), x)
    assert found.tolist() == [1.0, 1.0, 1.0]


def test_results_without_gradient() -> None:
    x = torch.ones(3, requires_grad=True)
    (first, second) = differentiable(
        lambda x: (x * 2, x * 3), lambda g, _: (g,), x, results=2, non_differentiable=(1,)
    )
    assert first.requires_grad
    assert not second.requires_grad


def test_second_derivatives_are_those_of_the_backward_or_refused() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    (y,) = differentiable(forward, backward, x, results=1)
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    assert torch.autograd.grad(first, x)[0].item() == 3.0
    (y,) = differentiable(forward, backward, x, results=1, once=True)
    (first,) = torch.autograd.grad(y, x, torch.tensor(1.0, requires_grad=True), create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_without_zeros_a_backward_that_gets_nothing_is_not_run() -> None:
    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> Any:
            return None

    x = torch.ones(3, requires_grad=True)
    (y,) = differentiable(forward, backward, x, results=1, materialize=False)
    Nothing.apply(y).sum().backward()  # type: ignore[no-untyped-call]
    assert x.grad is None


def test_what_autograd_does_not_save_is_read_as_often_as_wanted() -> None:
    for saved, refused in ((None, True), (1, True), (0, False)):
        x = torch.ones(3, requires_grad=True)
        (y,) = differentiable(
            lambda x: (x * 2, x.clone()), lambda gradient, x: (gradient * x,), x, results=1, saved=saved
        )
        y.sum().backward()
        if refused:
            with pytest.raises(RuntimeError, match="second time"):
                y.sum().backward()
        else:
            y.sum().backward()


def test_the_node_has_the_name_that_is_given() -> None:
    x = torch.ones(3, requires_grad=True)
    (y,) = differentiable(lambda x: (x * 2,), lambda gradient: (gradient * 2,), x, results=1, name="Doubled")
    assert y.grad_fn is not None
    assert y.grad_fn.name() == "DoubledBackward"
