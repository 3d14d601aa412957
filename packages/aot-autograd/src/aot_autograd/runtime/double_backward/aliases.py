"""Inputs of a program that is run again: the same numbers, at places of their own in autograd's graph."""

from __future__ import annotations

from typing import Any

import torch

from aot_autograd.runtime.hooks.freed_tensors import CAN_BE_FREED, Freed


class _View(torch.autograd.Function):
    """A view of the whole that hands gradients on, also sparse ones."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient


def alias(tensor: torch.Tensor, is_sparse: bool) -> torch.Tensor:
    """The same numbers at a place of their own, which is no view if the tensor is none: ``detach_`` refuses views.
    ``is_sparse``: its gradient may be."""
    view: torch.Tensor = _View.apply(tensor) if is_sparse else tensor.view_as(tensor)  # type: ignore[no-untyped-call]
    if tensor._is_view() or not CAN_BE_FREED:
        return view
    placed = Freed.of(view).tensor(view.detach())
    return view if placed is None else placed
