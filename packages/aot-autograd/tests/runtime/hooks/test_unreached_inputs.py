"""Hooks where no gradient arrives: eager calls none of them."""

from __future__ import annotations

from typing import Any

import torch


def test_hooks_of_results(compiled: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    one, other = compiled(lambda x: (x.sum(), x * 2))(x)
    seen: list[Any] = []
    other.register_hook(seen.append)
    one.backward(retain_graph=True)
    assert seen == []
    (one + other.sum()).backward()
    assert [gradient.tolist() for gradient in seen] == [[1.0, 1.0]]


def test_hooks_of_inputs(compiled: Any) -> None:
    leaf, y = (torch.ones(2, requires_grad=True) for _ in range(2))
    x = leaf * 1
    seen: list[Any] = []
    leaf.register_hook(lambda gradient: seen.append("leaf"))
    leaf.register_post_accumulate_grad_hook(lambda tensor: seen.append("accumulated"))
    x.register_hook(lambda gradient: seen.append("computed"))
    one, other = compiled(lambda x, y: (x.exp(), y * 2))(x, y)
    other.sum().backward(retain_graph=True)
    assert seen == []
    assert leaf.grad is None
    one.sum().backward()
    assert seen == ["computed", "leaf", "accumulated"]


def test_infinite_gradients_between_results(compiled: Any) -> None:
    x = torch.tensor([0.0, 4.0], requires_grad=True)

    def program(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        root = x * 2
        return root, root.sqrt()

    def gradient(function: Any) -> Any:
        x.grad = None
        root, last = function(x)
        root.retain_grad()
        (last.sum() + root.sum()).backward()
        return x.grad.tolist(), root.grad.tolist()

    assert gradient(compiled(program)) == gradient(program)


def test_hooks_of_several_tensors(compiled: Any) -> None:
    """Torch counts the nodes that a backward runs: those that it runs without a gradient are told of, too."""
    x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
    first, second, third = compiled(lambda x, y: (x * 2, x.exp(), y * 3))(x, y)
    seen: list[Any] = []

    def note(gradients: Any) -> None:
        seen.append([None if gradient is None else gradient.tolist() for gradient in gradients])

    torch.autograd.graph.register_multi_grad_hook((first, second), note)
    torch.autograd.graph.register_multi_grad_hook((x, y), note)
    third.sum().backward(retain_graph=True)
    assert seen == [[None, [3.0, 3.0]]]
    seen.clear()
    first.sum().backward(retain_graph=True)
    assert [[1.0, 1.0], None] in seen
    assert [[2.0, 2.0], None] in seen
    assert len(seen) == 2


def test_an_input_that_is_written_and_not_used(compiled: Any) -> None:
    x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
    seen: list[Any] = []
    x.register_post_accumulate_grad_hook(seen.append)

    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            x[0].add_(1)
        return y * 2

    compiled(program)(x, y).sum().backward()
    assert not seen
    assert x.tolist() == [2.0, 1.0]
    assert x._version == 1


class Partial(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradient, None


def test_an_input_that_is_reached_without_a_gradient(compiled: Any) -> None:
    """Eager calls the hooks of what it reaches, with None where a function returned None."""

    def program(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return Partial.apply(x, y * 2), x * 3

    def hooks_called(function: Any) -> list[list[Any]]:
        found = []
        x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
        one, other = function(x, y)
        for result in (one, other):
            seen: list[Any] = []
            handle = y.register_hook(seen.append)
            result.sum().backward(retain_graph=True)
            handle.remove()
            found.append(seen)
        return found

    assert hooks_called(compiled(program)) == hooks_called(program) == [[None], []]


def test_results_that_depend_on_a_leaf_of_the_programs_own(compiled: Any) -> None:
    x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
    seen: list[Any] = []
    x.register_hook(seen.append)

    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.detach().requires_grad_().sum() * y.detach()

    compiled(program)(x, y).sum().backward()
    assert not seen
    assert x.grad is y.grad is None


def test_hooks_of_several_leaves_where_one_is_asked_for(compiled: Any) -> None:
    """Torch refuses such hooks in a backward of chosen leaves, if it comes to them."""
    x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
    seen: list[Any] = []
    torch.autograd.graph.register_multi_grad_hook((x, y), seen.append)
    product, total = compiled(lambda x, y: (x * y, y.sum()))(x, y)
    assert torch.autograd.grad(total, x, retain_graph=True, allow_unused=True) == (None,)
    assert seen == []
    product.sum().backward()
    assert len(seen) == 1


def _led_nowhere() -> torch.Tensor:
    """A view that requires grad like its base, made with gradients off: no gradient goes on from it."""
    base = torch.ones(2, 3, requires_grad=True)
    with torch.no_grad():
        view: torch.Tensor = base[0]
    assert view.requires_grad
    assert view.grad_fn is None
    return view


def test_an_input_that_leads_nowhere(compiled: Any) -> None:
    def gradients(function: Any) -> Any:
        leaf = torch.ones(3, requires_grad=True)
        view, computed = _led_nowhere(), leaf * 2
        results = function(view, 3, computed)
        results[1].sum().backward(retain_graph=True)
        some = torch.autograd.grad(results[2], computed, retain_graph=True)[0]
        second = torch.autograd.grad(results[2] + results[1].sum(), computed, create_graph=True)[0]
        second.sum().backward()
        return leaf.grad.tolist(), some.tolist(), second.tolist(), view.grad

    def program(view: torch.Tensor, n: int, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return view * view, x.exp() * n, (view * x).sum()

    assert gradients(compiled(program)) == gradients(program)
