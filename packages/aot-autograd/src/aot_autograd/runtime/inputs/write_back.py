"""Inputs get their new content, unless the compiled graph has written it there already; versions count as in eager."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import torch

from aot_autograd.plan import MutatedInput
from aot_autograd.runtime.inputs.columns import items

_FEW = 4
"""Copies that are not worth putting together."""

_set_versions = torch._C._autograd._unsafe_set_version_counter
_count_write: Any = torch._C._increment_version
_version = operator.attrgetter("_version")


class WriteBack:
    """Written inputs get their results' contents, and versions that tell of as many writes as the program made.

    Where a graph returns the input itself, written, autograd only hears of the write, of all such inputs at once. Of
    writes that do not count it never hears. ``later``: writes that are still going to be counted. An optimizer writes
    to a thousand tensors in a step, so what can be is asked of all at once, without a loop in Python.
    """

    __slots__ = ("_all_counted", "_contents", "_counted", "_counters", "_counts", "_targets")

    def __init__(self, writes: Iterable[MutatedInput], later: int = 0) -> None:
        writes = tuple(writes)
        self._targets = items([write.input_index for write in writes])
        self._contents = items([write.graph_index for write in writes])
        self._counted = tuple([bool(write.counted) for write in writes])
        self._all_counted = all(self._counted)
        counts = [(write.input_index, write.counted - later) for write in writes]
        counts = [(index, count) for index, count in counts if count > 1 or (count == 0 and later)]
        self._counters = items([index for index, _ in counts])
        self._counts = [count for _, count in counts]

    def __call__(self, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        """Write to a call's inputs what its graph returned."""
        if not self._counted:
            return
        targets, contents = self._targets(inputs), self._contents(results)
        counters: tuple[torch.Tensor, ...] = ()
        if self._counts:
            counters = self._counters(inputs)
            versions = tuple(map(operator.add, map(_version, counters), self._counts))
        written: Sequence[torch.Tensor] = targets
        if not (self._all_counted and all(map(operator.is_, targets, contents))):
            writes = list(zip(targets, contents, self._counted, strict=True))
            written = [target for target, content, counted in writes if counted and content is target]
            _copy([(t if counted else t.data, content) for t, content, counted in writes if content is not t])
        _increment(written)
        if counters:
            _set_versions(counters, versions)


def _increment(written: Sequence[torch.Tensor]) -> None:
    """One more write of each but the inference tensors, whose writes nobody counts: torch refuses the first of those
    when it has counted the ones before it."""
    while written:
        try:
            _count_write(written)
        except RuntimeError:
            first = next((i for i, tensor in enumerate(written) if tensor.is_inference()), None)
            if first is None:
                raise
            written = written[first + 1 :]
        else:
            return


def _copy(copies: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> None:
    """Each tensor gets its content; the many small ones of a model on a GPU, its running statistics, at once."""
    if len(copies) == 1 and not copies[0][0].is_inference():
        copies[0][0].copy_(copies[0][1])
        return
    together = len(copies) >= _FEW and all(
        target.is_cuda and not target.is_inference() for target, _ in copies
    )
    apart = copies if together else ()
    memory = [tensor.untyped_storage()._cdata for pair in apart for tensor in pair]
    if not apart or len(set(memory)) < len(memory):  # in turn, where one's content is in another's memory
        for target, content in copies:
            with (
                torch.inference_mode() if target.is_inference() else nullcontext()
            ):  # torch refuses it elsewhere
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


class FreshVersions:
    """Results of a compiled graph that its kernels have counted writes to (``addmm`` with ``out=``), where eager's are
    new. Which these are the first call tells."""

    __slots__ = ("_count", "_pick", "_zeros")

    def __init__(self, count: int) -> None:
        """``count``: the first results, of which none is a written input."""
        self._count = count
        self._zeros: tuple[int, ...] | None = None

    def __call__(self, results: Sequence[Any], inputs: Iterable[Any]) -> None:
        """Set the versions of a call's results to 0."""
        if self._zeros is None:
            places = self._counted(results, inputs)
            self._pick, self._zeros = items(places), (0,) * len(places)
        if self._zeros:
            _set_versions(self._pick(results), self._zeros)

    def _counted(self, results: Sequence[Any], inputs: Iterable[Any]) -> list[int]:
        given = {x.untyped_storage()._cdata for x in inputs if isinstance(x, torch.Tensor)}
        return [
            place
            for place, result in enumerate(results[: self._count])
            if isinstance(result, torch.Tensor)
            and not result.is_inference()
            and result._version
            and result.untyped_storage()._cdata not in given
        ]
