"""Whether two real tensors may share an element."""

from __future__ import annotations

import torch


def overlapping(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether the address ranges of two strided tensors meet. Interleaved tensors count as meeting."""
    if _memory(one) != _memory(other) or one.numel() == 0 or other.numel() == 0:
        return False
    return _start(one) < _end(other) and _start(other) < _end(one)


def _memory(tensor: torch.Tensor) -> int:
    """What tells apart the memory of tensors: its address, or the storage object's for tensors without data."""
    storage = tensor.untyped_storage()
    try:
        return storage.data_ptr() or int(storage._cdata)
    except RuntimeError:
        return int(storage._cdata)


def _start(tensor: torch.Tensor) -> int:
    return int(tensor.storage_offset()) * tensor.element_size()


def _end(tensor: torch.Tensor) -> int:
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return _start(tensor) + int(last + 1) * tensor.element_size()
