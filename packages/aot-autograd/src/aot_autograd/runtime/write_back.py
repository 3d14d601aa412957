"""Inputs get their new content, unless the compiled graph has written it there already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from aot_autograd.plan import MutatedInput


def write_back(inputs: Sequence[Any], results: Sequence[Any], writes: Iterable[MutatedInput]) -> None:
    """Each written input gets its result's content.

    Where a graph returns the input itself, written, autograd only hears of the write, of all such inputs at once. Of
    writes that do not count it never hears.
    """
    written = []
    for write in writes:
        target, content = inputs[write.input_index], results[write.graph_index]
        if content is target:
            if write.counted:
                written.append(target)
        else:
            (target if write.counted else target.data).copy_(content)
    if written:
        torch.autograd.graph.increment_version([t for t in written if not t.is_inference()])
