"""Sizes and strides of tensors as torch keeps them, whatever the tensor's class makes of ``size`` and ``stride``."""

from __future__ import annotations

import torch


def size_of(tensor: torch.Tensor, dim: int) -> int:
    """``tensor.size(dim)``: reading is no operation of the program, so no ``__torch_function__`` is asked."""
    with torch._C.DisableTorchFunctionSubclass():
        return torch.Tensor.size(tensor, dim)


def stride_of(tensor: torch.Tensor, dim: int) -> int:
    """``tensor.stride(dim)``, in the same way."""
    with torch._C.DisableTorchFunctionSubclass():
        return torch.Tensor.stride(tensor, dim)
