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


def attention(query: Any, key: Any, value: Any, longest: int, longest_key: int, scale: Any) -> Any:
    """Attention within each part: of the padded tensors, without what is padding."""
    offsets, total = query.offsets(), query._values.shape[1]
    places = torch.arange(longest_key, device=offsets.device)
    mask = places < key.offsets().diff().clamp(min=1).unsqueeze(1)
    found = torch.nn.functional.scaled_dot_product_attention(
        _heads(query, longest),
        _heads(key, longest_key),
        _heads(value, longest_key),
        mask.unsqueeze(1).unsqueeze(1),
        scale=scale,
    )
    rows = _rows_of(found.transpose(1, 2).flatten(2), offsets, total)
    made = torch.nested.nested_tensor_from_jagged(
        rows.unflatten(-1, (found.shape[1], found.shape[3])), offsets
    )
    return made.transpose(1, 2)


def _heads(nested: Any, longest: int) -> Any:
    """A nested tensor of (parts, heads, ragged, size), padded."""
    rows = nested._values.transpose(0, 1)
    padded = aten._jagged_to_padded_dense_forward(rows.flatten(1), [nested.offsets()], [longest], 0.0)
    return padded.unflatten(-1, (rows.shape[1], rows.shape[2])).transpose(1, 2)


DIFFERENTIABLE: dict[Any, Callable[..., Any]] = {}
"""By the operators, and their packets, that have no derivative of their own."""

for _packet, _function in (
    (aten._jagged_to_padded_dense_forward, padded),
    (aten._padded_dense_to_jagged_forward, unpadded),
):
    DIFFERENTIABLE[_packet] = DIFFERENTIABLE[_packet.default] = _function
