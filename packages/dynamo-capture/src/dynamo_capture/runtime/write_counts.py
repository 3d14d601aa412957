"""How often existing tensors have been written to, where the graph writes more often than the program."""

from __future__ import annotations

import torch

_set_versions = torch._C._autograd._unsafe_set_version_counter


class TakenBack:
    """A branch that data decide about has been done in any case, and taken back with one write more where they did not
    choose it. ``counts``: how often it writes to each tensor; it is chosen where the answer is ``holds``."""

    __slots__ = ("_counts", "_holds")

    def __init__(self, holds: bool, counts: tuple[int, ...]) -> None:
        self._holds = holds
        self._counts = counts

    def __call__(self, answer: torch.Tensor, *tensors: torch.Tensor) -> None:
        """The counts become what they are where the program alone writes."""
        is_done = bool(answer) is self._holds
        for tensor, count in zip(tensors, self._counts, strict=True):
            extra = 1 if is_done else 1 + count
            _set_versions((tensor,), (tensor._version - extra,))
