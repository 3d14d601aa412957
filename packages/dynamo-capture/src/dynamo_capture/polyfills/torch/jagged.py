"""Rows of different lengths to and from a padded tensor: with derivatives, which torch has for nested tensors only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten


class _Padded(torch.autograd.Function):
    """What was a row goes back to it; padding has no gradient."""

    @staticmethod
    def forward(ctx: Any, rows: Any, offsets: Any, longest: Any, padding: Any) -> Any:
        ctx.save_for_backward(offsets)
        ctx.total = rows.shape[0]
        return aten._jagged_to_padded_dense_forward.default(rows, [offsets], longest, padding)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (offsets,) = ctx.saved_tensors
        return _rows_of(gradient, offsets, ctx.total), None, None, None


def _rows_of(padded: Any, offsets: Any, total: int) -> Any:
    """The rows of a padded tensor, one after the other; zeros where it was cut off."""
    place = torch.arange(total, device=offsets.device, dtype=offsets.dtype)
    batch = torch.searchsorted(offsets[1:], place, right=True).clamp(max=padded.shape[0] - 1)
    inside = place - offsets[batch]
    last = padded.shape[1] - 1
    found = padded[batch, inside.clamp(max=last)]
    return torch.where((inside <= last).unsqueeze(-1), found, torch.zeros_like(found))


def padded(rows: Any, offsets: list[Any], longest: list[int], padding: float = 0.0) -> Any:
    """``_jagged_to_padded_dense_forward`` with a derivative."""
    return _Padded.apply(rows, offsets[0], longest, padding)  # type: ignore[no-untyped-call]


def unpadded(tensor: Any, offsets: list[Any], total: Any = None) -> Any:
    """``_padded_dense_to_jagged_forward`` with a derivative."""
    return _rows_of(tensor, offsets[0], total)


DIFFERENTIABLE: dict[Any, Callable[..., Any]] = {}
"""By the operators, and their packets, that have no derivative of their own."""

for _packet, _function in (
    (aten._jagged_to_padded_dense_forward, padded),
    (aten._padded_dense_to_jagged_forward, unpadded),
):
    DIFFERENTIABLE[_packet] = DIFFERENTIABLE[_packet.default] = _function
