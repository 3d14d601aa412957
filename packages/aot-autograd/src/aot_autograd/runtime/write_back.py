"""Inputs get their new content, unless the compiled graph has written it there already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch


def write_back(inputs: Sequence[Any], results: Sequence[Any], places: Iterable[tuple[int, int]]) -> None:
    """``inputs[i].copy_(results[r])`` for each ``(i, r)``.

    Where a graph returns the input itself, written, autograd only hears of the write, of all such inputs at once.
    """
    written = []
    for position, number in places:
        target, content = inputs[position], results[number]
        if content is target:
            written.append(target)
        else:
            target.copy_(content)
    if written:
        torch.autograd.graph.increment_version([t for t in written if not t.is_inference()])
