"""Splits that autograd does not know as views share the memory of what they split."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import fxstack


def written_whole(x: torch.Tensor) -> Any:
    first, second = x.unsafe_chunk(2)
    x.add_(1)
    return first * 2, second


def written_part(x: torch.Tensor) -> Any:
    first, _ = torch.unsafe_split(x, 2, dim=-1)
    first.add_(1)
    return x * 2


def written_twice(x: torch.Tensor) -> Any:
    made = x.exp()
    first, second = made.unsafe_split_with_sizes([1, made.shape[0] - 1])
    made.mul_(3)
    second.add_(first.sum())
    return first, second, made


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("program", [written_whole, written_part, written_twice])
def test_writes_are_seen(program: Callable[[torch.Tensor], Any], dynamic: bool) -> None:
    compiled = fxstack.compile(program, fullgraph=True, dynamic=dynamic)
    given = [torch.linspace(0, 1, 4) for _ in range(2)]
    torch.testing.assert_close(compiled(given[0]), program(given[1]))
    torch.testing.assert_close(*given)


def test_parts_show_the_input() -> None:
    x = torch.ones(5)
    first, second = fxstack.compile(lambda x: x.unsafe_split_with_sizes([2, 3]), fullgraph=True)(x)
    assert (first.data_ptr(), second.data_ptr()) == (x.data_ptr(), x[2:].data_ptr())


def test_what_torch_refuses() -> None:
    with pytest.raises(RuntimeError, match="split_with_sizes"):
        fxstack.compile(lambda x: x.unsafe_split_with_sizes([2, 2]))(torch.ones(5))


def cut_off_beside_their_base(x: torch.Tensor) -> Any:
    wide = x.prod(0, keepdim=True).expand_as(x)
    leaf = wide.detach().requires_grad_()
    return leaf.detach(), leaf, wide * wide.max()


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_second_derivatives_do_not_go_through_views_that_are_cut_off(backend: str) -> None:
    x = torch.linspace(0.5, 2, 6).reshape(2, 3).requires_grad_()
    found = []
    for run in (cut_off_beside_their_base, fxstack.compile(cut_off_beside_their_base, backend=backend)):
        results = run(x)
        (first,) = torch.autograd.grad(sum((t * t).sum() for t in results), x, create_graph=True)
        found.append((first, *torch.autograd.grad(first.sum(), x)))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def made_in_inference_mode(x: torch.Tensor) -> Any:
    hidden = (x * 2)[0]
    with torch.inference_mode(), torch.enable_grad():
        parts = x.unbind()
        row, turned = x[0], x.t()
    return hidden, row, turned, *parts


@pytest.mark.parametrize("leaf", [True, False])
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_views_that_are_made_in_inference_mode(backend: str, leaf: bool) -> None:
    """They have no history, whether gradients are turned on there or not."""
    found = []
    for run in (made_in_inference_mode, fxstack.compile(made_in_inference_mode, backend=backend)):
        x = torch.ones(2, 3, requires_grad=True)
        views = run(x if leaf else x * 1)
        found.append([(v.is_leaf, v.requires_grad, v._is_view(), v.is_inference()) for v in views])
    assert found[1] == found[0]
