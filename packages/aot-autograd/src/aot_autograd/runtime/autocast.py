"""Graphs that are run operator by operator: each takes what was recorded.

A program is recorded below autocast: what that converts is converted in the graph. A ``bmm`` of the graph in float32 is
one that autocast had let alone, inside of torch's attention, say; run under autocast it would be converted.
"""

from __future__ import annotations

from typing import Any

import torch

from fx_interface.backend import CompiledGraph

_DEVICES = ("cpu", "cuda")


class without_autocast:
    """A block in which autocast is off, as it is in the backward of what ran under it."""

    def __enter__(self) -> None:
        self._enabled = [kind for kind in _DEVICES if torch.is_autocast_enabled(kind)]
        for kind in self._enabled:
            torch.set_autocast_enabled(kind, False)

    def __exit__(self, *error: object) -> None:
        for kind in self._enabled:
            torch.set_autocast_enabled(kind, True)


def as_recorded(compiled: CompiledGraph) -> CompiledGraph:
    """What a graph compiler gave, run outside of autocast; itself, if the program was not compiled under it."""
    if not any(map(torch.is_autocast_enabled, _DEVICES)):
        return compiled

    def run(*inputs: Any) -> Any:
        with without_autocast():
            return compiled(*inputs)

    return run


class without_hooks:
    """The caller's hooks on saved tensors are for what is computed, not for traced tensors; the program's own work."""

    def __enter__(self) -> None:
        autograd = torch._C._autograd
        self._hooks: list[tuple[Any, Any]] = []
        while (found := autograd._top_saved_tensors_default_hooks(True)) is not None:
            self._hooks.append(found)
            autograd._pop_saved_tensors_default_hooks()

    def __exit__(self, *error: object) -> None:
        for pack, unpack in reversed(self._hooks):
            torch._C._autograd._push_saved_tensors_default_hooks(pack, unpack)


class without_anomaly_detection:
    """A block in which torch does not tell of gradients that fail: a program that cannot be recorded in one way is
    recorded in another, or not compiled."""

    def __enter__(self) -> None:
        self._was = (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
        torch.set_anomaly_enabled(False)

    def __exit__(self, *error: object) -> None:
        torch.set_anomaly_enabled(*self._was)
