"""Borders of a tensor's own elements, joined from parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional


def pad(*args: Any, **kwargs: Any) -> Any:
    """``functional.pad``: circular borders are parts of the tensor beside it, where torch copies into a new tensor five
    times; other borders, and arguments that torch may refuse, are torch's."""
    names = ("input", "pad", "mode", "value")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    x: Any = given.get("input")
    widths: Any = given.get("pad")
    if given.get("mode") != "circular" or not isinstance(x, torch.Tensor) or not _is_usual(x, widths):
        return functional.pad(*args, **kwargs)
    made = x
    for pair in range(len(widths) // 2):
        axis = x.dim() - 1 - pair
        low, high = widths[2 * pair : 2 * pair + 2]
        size = x.size(axis)
        before = [made.narrow(axis, size - low, low)] if low else []
        after = [made.narrow(axis, 0, high)] if high else []
        made = torch.cat([*before, made, *after], axis) if before or after else made
    return made.clone(memory_format=torch.contiguous_format) if made is x else made.contiguous()


def _is_usual(x: torch.Tensor, widths: Any) -> bool:
    """Whether the last dimensions but two are padded, none by less than nothing or more than it has."""
    if not isinstance(widths, Sequence) or not all(type(width) is int and width >= 0 for width in widths):
        return False
    count = len(widths) // 2
    if len(widths) % 2 or x.dim() not in (count + 1, count + 2) or x.layout is not torch.strided:
        return False
    sizes = [x.size(x.dim() - 1 - number // 2) for number in range(len(widths))]
    return all(bool(width <= size) for width, size in zip(widths, sizes, strict=True))
