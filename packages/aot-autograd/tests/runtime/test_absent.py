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
