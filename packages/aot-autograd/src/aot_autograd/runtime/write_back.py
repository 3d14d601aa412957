"""An input gets its new content, unless the compiled graph has written it there already."""

from __future__ import annotations

import torch


def write_back(target: torch.Tensor, content: torch.Tensor) -> None:
    """``target.copy_(content)``; where a graph returns the input itself, written, autograd only hears of the write."""
    if content is not target:
        target.copy_(content)
    elif not target.is_inference():
        torch.autograd.graph.increment_version(target)
