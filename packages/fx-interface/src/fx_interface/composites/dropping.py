"""Dropout: where nothing is dropped, eager gives the tensor itself; torch's rule for traced sizes gives a copy."""

from __future__ import annotations

import torch
from torch.nn import functional


def dropout(input: torch.Tensor, p: float, train: bool) -> torch.Tensor:
    """``torch.dropout``."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    if p == 0 or not train or any(isinstance(size, int) and size == 0 for size in input.shape):
        return input
    return torch.dropout(input, p, train)


def functional_dropout(
    input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> torch.Tensor:
    """``torch.nn.functional.dropout``."""
    if inplace or not 0 <= p <= 1:  # the latter it refuses in its own words
        return functional.dropout(input, p, training, inplace)
    return dropout(input, p, training)


__all__ = ["dropout", "functional_dropout"]
