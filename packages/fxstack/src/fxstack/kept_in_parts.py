"""Operators that are traced as several, so that their results need not be kept for the backward.

The gradient of a logarithm of a softmax is computed from its result, which has as many elements as its argument, often
of twice the bytes. Of the largest element and the sum of a row, and the argument, a fused kernel computes it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import torch
from torch import Tensor
from torch._ops import OpOverload

_WIDE: Final = (torch.float32, torch.float64)


def _log_softmax(x: Tensor, dim: int, half_to_float: bool) -> Any:
    no_row = any(isinstance(size, int) and size == 0 for size in x.shape) or x.dim() == 0
    if no_row or not (half_to_float or x.dtype in _WIDE):
        return NotImplemented
    wide = x.to(torch.float32) if half_to_float else x
    shifted = wide - wide.amax(dim, keepdim=True)
    return shifted - shifted.exp().sum(dim, keepdim=True).log()


KEPT_IN_PARTS: Final[Mapping[OpOverload, Callable[..., Any]]] = MappingProxyType(
    {torch.ops.aten._log_softmax.default: _log_softmax}
)
