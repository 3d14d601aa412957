"""Inputs get their new content, unless the compiled graph has written it there already; versions count as in eager."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from aot_autograd.plan import MutatedInput

_FEW = 4
"""Copies that are not worth putting together."""

_set_versions = torch._C._autograd._unsafe_set_version_counter


def write_back(
    inputs: Sequence[Any], results: Sequence[Any], writes: Iterable[MutatedInput], later: int = 0
) -> None:
    """Each written input gets its result's content, and a version that tells of as many writes as the program made.

    Where a graph returns the input itself, written, autograd only hears of the write, of all such inputs at once. Of
    writes that do not count it never hears. ``later``: writes that are still going to be counted.
    """
    written, counters, versions = [], [], []
    copies: list[tuple[torch.Tensor, torch.Tensor]] = []
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
            copies.append((target if write.counted else target.data, content))
    _copy(copies)
    if written:
        torch.autograd.graph.increment_version([t for t in written if not t.is_inference()])
    if counters:
        _set_versions(tuple(counters), tuple(versions))


def _copy(copies: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> None:
    """Each tensor gets its content; the many small ones of a model on a GPU, its running statistics, at once."""
    apart = copies if len(copies) >= _FEW and all(target.is_cuda for target, _ in copies) else ()
    memory = [tensor.untyped_storage()._cdata for pair in apart for tensor in pair]
    if not apart or len(set(memory)) < len(memory):  # in turn, where one's content is in another's memory
        for target, content in copies:
            target.copy_(content)
        return
    by_dtype: dict[torch.dtype, tuple[list[torch.Tensor], list[torch.Tensor]]] = {}
    for target, content in copies:
        targets, contents = by_dtype.setdefault(target.dtype, ([], []))
        targets.append(target)
        contents.append(content)
    for targets, contents in by_dtype.values():
        torch._foreach_copy_(targets, contents)


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
