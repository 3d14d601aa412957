"""Substitutes for functions of torch whose kernels in C take no symbolic lengths, or read one out of a tensor."""

from __future__ import annotations

from typing import Any

import torch

from dynamo_capture.polyfills.registry import substitutes


@substitutes(torch._C._nn.pad_sequence)
def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Any:
    """Sequences ``(L_i, *)``, each padded to the longest, as one tensor ``(B, T, *)`` or ``(T, B, *)``."""
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    first = sequences[0]
    longest = max([sequence.size(0) for sequence in sequences])
    dim = 0 if batch_first else 1
    padded = []
    for sequence in sequences:
        if sequence.dim() != first.dim():
            sequence = sequence.expand(sequence.size(0), *first.shape[1:])
        missing = longest - sequence.size(0)
        sides = [0, 0] * (first.dim() - 1) + ([0, missing] if padding_side == "right" else [missing, 0])
        piece = torch.nn.functional.pad(sequence.to(first.dtype), sides, value=padding_value)
        padded.append(piece)
    return torch.stack(padded, dim)


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
