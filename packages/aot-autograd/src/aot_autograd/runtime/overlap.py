"""Whether two real tensors may share an element."""

from __future__ import annotations

import torch


def overlapping(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether the address ranges of two strided tensors meet. Interleaved tensors count as meeting."""
    if one.untyped_storage().data_ptr() != other.untyped_storage().data_ptr():
        return False
    if one.numel() == 0 or other.numel() == 0 or one.untyped_storage().data_ptr() == 0:
        return False
    return one.data_ptr() < _end(other) and other.data_ptr() < _end(one)


def _end(tensor: torch.Tensor) -> int:
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr() + (last + 1) * tensor.element_size()
