"""Splits that autograd does not follow as views: below autograd they are views like others, and share memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def _of_one_memory(split: Callable[..., Any]) -> Callable[..., Any]:
    """``split`` with results that show the memory of its first argument, one view each."""

    def composite(*args: Any, **kwargs: Any) -> Any:
        parts = split(*args, **kwargs)
        dim = args[2] if len(args) > 2 else kwargs.get("dim", 0)
        if not args or not isinstance(dim, int) or "out" in kwargs:
            return parts
        views, start = [], 0
        for part in parts:
            views.append(args[0].narrow(dim, start, part.shape[dim]))
            start = start + part.shape[dim]
        return tuple(views)

    return composite


unsafe_chunk = _of_one_memory(torch.unsafe_chunk)
unsafe_split = _of_one_memory(torch.unsafe_split)
unsafe_split_with_sizes = _of_one_memory(torch.unsafe_split_with_sizes)
