"""Inputs get their new content, unless the compiled graph has written it there already; versions count as in eager."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from aot_autograd.plan import MutatedInput

_set_versions = torch._C._autograd._unsafe_set_version_counter


def write_back(
    inputs: Sequence[Any], results: Sequence[Any], writes: Iterable[MutatedInput], later: int = 0
) -> None:
    """Each written input gets its result's content, and a version that tells of as many writes as the program made.

    Where a graph returns the input itself, written, autograd only hears of the write, of all such inputs at once. Of
    writes that do not count it never hears. ``later``: writes that are still going to be counted.
    """
    written, counters, versions = [], [], []
    for write in writes:
        target, content = inputs[write.input_index], results[write.graph_index]
        count = write.counted - later
        if count > 1 or (count == 0 and later):
            counters.append(target)
            versions.append(target._version + count)
        if content is target:
            if write.counted:
                written.append(target)
        else:
            (target if write.counted else target.data).copy_(content)
    if written:
        torch.autograd.graph.increment_version([t for t in written if not t.is_inference()])
    if counters:
        _set_versions(tuple(counters), tuple(versions))


def count_writes(results: Sequence[Any], versions: Iterable[tuple[int, int]]) -> None:
    """Graph results, by number, get the version that the program's writes to them have made."""
    for index, version in versions:
        result = results[index]
        if not result.is_inference():
            _set_versions((result,), (version,))


def count_more(inputs: Sequence[Any], versions: Iterable[tuple[int, int]]) -> None:
    """The versions of inputs, by number, grow by this much, for writes that have changed nothing."""
    for index, count in versions:
        _set_versions((inputs[index],), (inputs[index]._version + count,))
