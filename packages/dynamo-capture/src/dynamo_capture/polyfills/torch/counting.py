"""Substitutes for functions of torch that read a number out of a tensor in C, to make a tensor of that size."""

from __future__ import annotations

from typing import Any

import torch

from dynamo_capture.polyfills.registry import substitutes


@substitutes(torch.nn.functional.one_hot)
def one_hot(tensor: Any, num_classes: Any = -1) -> Any:
    """With as many classes as the greatest index says, where nothing else does."""
    if num_classes != -1 and tensor.device.type == "cpu":  # which torch checks in eager only
        torch._assert_async((tensor >= 0).all(), "Class values must be non-negative.")
        torch._assert_async((tensor < num_classes).all(), "Class values must be smaller than num_classes.")
    if num_classes > 0 and tensor.dtype is torch.int64:
        return (tensor.unsqueeze(-1) == torch.arange(num_classes, device=tensor.device)).to(torch.int64)
    if num_classes != -1 or tensor.dtype is not torch.int64 or tensor.numel() == 0:
        return torch.ops.aten.one_hot.default(tensor, num_classes)
    least, count = tensor.min().item(), tensor.max().item() + 1
    torch._check(least >= 0, lambda: "Class values must be non-negative.")  # type: ignore[no-untyped-call]
    classes = torch.arange(count, device=tensor.device)
    return (tensor.unsqueeze(-1) == classes).to(torch.int64)
