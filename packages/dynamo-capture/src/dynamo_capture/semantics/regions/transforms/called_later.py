"""Whether what a transform's function reads is as it was when the transform was called.

    result, pull = vjp(f, x);  factor = 3.0;  pull(seeds)       # eager differentiates what f has computed

What ``vjp`` and ``linearize`` return traces the function once more where it is called, which is the same only if
nothing has changed that the function reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import TRANSFORM
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.regions.reachable import first_reached
from dynamo_capture.values import Value
from dynamo_capture.values.base import Context
from fx_interface.torch_internals.torch_state import FACTS


class CalledLater:
    """The moment at which a transform was called; ``roots`` lead to what its function reads and to what it gave."""

    __slots__ = ("_changes", "_name", "_output", "_roots", "_settings", "_writes")

    def __init__(self, tx: Context, name: str, roots: Sequence[Value]) -> None:
        self._name = name
        self._roots = roots
        self._output, self._writes, self._settings = tx.output, len(tx.output.overwritten), _settings()
        if tx.effects.changes is None:
            tx.effects.changes = []
        self._changes = len(tx.effects.changes)

    def check_unchanged(self, tx: Context) -> None:
        """A graph break where the function may be another one than the transform has called."""
        if _settings() != self._settings:
            raise GraphBreak(TRANSFORM, f"what {self._name}() returns is called in another mode than that")
        changed = first_reached(
            tx,
            (tx.effects.changes or [])[self._changes :],
            [one for one in self._output.overwritten[self._writes :] if isinstance(one, Value)],
            self._roots,
        )
        if changed is not None:
            what = changed.describe() if isinstance(changed, Value) else "something"
            raise GraphBreak(TRANSFORM, f"what {self._name}() returns is called when {what} has changed")


def _settings() -> tuple[Any, ...]:
    """What computes otherwise, beside gradients: the function is called with those."""
    return tuple(fact.read() for fact in FACTS if fact.read is not torch.is_grad_enabled)
