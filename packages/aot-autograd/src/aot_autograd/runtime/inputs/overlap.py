"""Whether real tensors share memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from aot_autograd.plan import Apart
from aot_autograd.runtime.inputs.columns import items


class OverlapCheck:
    """Looks for memory that a written input shares with another. ``fixed_sizes``: all calls' inputs have equal sizes.

    One pass over the inputs in the order of their addresses. What was found to be apart is not looked at again as
    long as every address stays what it was, as those of a model's state do.
    """

    def __init__(self, apart: Apart, *, fixed_sizes: bool) -> None:
        self._positions = (*apart.written, *apart.others)
        self._chosen = items(self._positions)
        self._count = len(apart.written)
        self._fixed_sizes = fixed_sizes
        self._lengths: list[int] | None = None
        self._known: list[int] | None = None

    def first(self, inputs: Sequence[Any]) -> tuple[int, int] | None:
        """The numbers of two inputs that share memory, one of them written; None if there are none."""
        tensors = self._chosen(inputs)
        try:
            starts = list(map(torch.Tensor.data_ptr, tensors))
        except RuntimeError:
            return self._pairwise(tensors)
        if starts == self._known:
            return None
        lengths = self._lengths
        if lengths is None:
            lengths = list(map(_length, tensors))
            if self._fixed_sizes:
                self._lengths = lengths
        if 0 in starts and any(length and not start for start, length in zip(starts, lengths, strict=True)):
            return self._pairwise(tensors)
        found = self._sweep(starts, lengths)
        if found is None and self._fixed_sizes:
            self._known = starts
        return found

    def _sweep(self, starts: list[int], lengths: list[int]) -> tuple[int, int] | None:
        """Tensors sorted by address: each is compared with the one before it that reaches furthest."""
        end = written_end = last = last_written = -1
        for place in sorted(range(len(starts)), key=starts.__getitem__):
            length, start = lengths[place], starts[place]
            if not length:
                continue
            is_written = place < self._count
            if start < (end if is_written else written_end):
                return self._named(last if is_written else last_written, place)
            if start + length > end:
                end, last = start + length, place
            if is_written and start + length > written_end:
                written_end, last_written = start + length, place
        return None

    def _pairwise(self, tensors: Sequence[torch.Tensor]) -> tuple[int, int] | None:
        """As ``first``, for tensors without addresses."""
        for place in range(self._count):
            for other in range(place + 1, len(tensors)):
                if overlapping(tensors[place], tensors[other]):
                    return self._named(place, other)
        return None

    def _named(self, one: int, other: int) -> tuple[int, int]:
        first, second = sorted((one, other))
        return self._positions[first], self._positions[second]


def overlapping(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether the address ranges of two strided tensors meet. Interleaved tensors count as meeting."""
    if _memory(one) != _memory(other) or one.numel() == 0 or other.numel() == 0:
        return False
    return _start(one) < _start(other) + _length(other) and _start(other) < _start(one) + _length(one)


def _memory(tensor: torch.Tensor) -> int:
    """What tells apart the memory of tensors: its address, or the storage object's for tensors without data."""
    storage = tensor.untyped_storage()
    try:
        return storage.data_ptr() or int(storage._cdata)
    except RuntimeError:
        return int(storage._cdata)


def _start(tensor: torch.Tensor) -> int:
    return int(tensor.storage_offset()) * tensor.element_size()


def _length(tensor: torch.Tensor) -> int:
    """The bytes from a tensor's first to behind its last element."""
    if tensor.is_contiguous():
        return tensor.nbytes
    if tensor.numel() == 0:
        return 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return int(last + 1) * tensor.element_size()
