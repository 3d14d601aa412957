"""Sizes, strides and other facts of tensors as torch keeps them, whatever the tensor's class puts in their place."""

from __future__ import annotations

from typing import Any

import torch


def torchs_own(tensor: torch.Tensor, name: str) -> Any:
    """``tensor.name`` as torch's own class of tensors reads it."""
    with torch._C.DisableTorchFunction():
        return getattr(torch.Tensor, name).__get__(tensor)


def size_of(tensor: torch.Tensor, dim: int) -> int:
    """``tensor.size(dim)``: reading is no operation of the program, so no ``__torch_function__`` is asked."""
    with torch._C.DisableTorchFunction():
        return torch.Tensor.size(tensor, dim)


def stride_of(tensor: torch.Tensor, dim: int) -> int:
    """``tensor.stride(dim)``, in the same way."""
    with torch._C.DisableTorchFunction():
        return torch.Tensor.stride(tensor, dim)
