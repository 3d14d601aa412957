"""``flex_attention`` with all scores in memory, for functions that are no programs of one point."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch


def flex_attention(
    query: Any,
    key: Any,
    value: Any,
    score_mod: Callable[..., Any],
    mask_mod: Callable[..., Any],
    scale: float,
) -> Any:
    """What torch's higher-order operator gives: results, logarithms of sums and maxima, both of base 2."""
    groups = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    batch = query.shape[0]
    key, value = key.expand(batch, *key.shape[1:]), value.expand(batch, *value.shape[1:])
    working = torch.float64 if query.dtype is torch.float64 else torch.float32
    first = query.to(working) @ key.to(working).transpose(-2, -1) * scale
    points = [torch.arange(size, device=query.device) for size in first.shape]
    seen = _for_all(mask_mod, [])(*points)
    scores = torch.where(seen, _for_all(score_mod, [0])(first, *points).to(working), -math.inf)
    largest = scores.amax(-1)
    empty = largest == -math.inf
    weights = torch.where(empty.unsqueeze(-1), 0.0, scores.softmax(-1))
    sums = torch.where(empty, -math.inf, scores.logsumexp(-1))
    out = _laid_out(weights.to(query.dtype) @ value.to(query.dtype), query)
    return out, sums / math.log(2), largest / math.log(2)


def _for_all(function: Callable[..., Any], first: list[Any]) -> Callable[..., Any]:
    """The function for all points, of what is one number at each."""
    for dim in (3, 2, 1, 0):
        places = [None] * 4
        places[dim] = 0  # type: ignore[call-overload]
        function = torch.vmap(function, in_dims=(*first, *places))
    return function


def _laid_out(out: Any, query: Any) -> Any:
    order = sorted(range(4), key=lambda dim: query.stride(dim))
    order = [*[dim for dim in reversed(order) if dim != 3], 3]
    return out.permute(order).contiguous().permute([order.index(dim) for dim in range(4)])
