"""A substitute for padding sequences to one length, whose kernel in C takes no symbolic lengths."""

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
