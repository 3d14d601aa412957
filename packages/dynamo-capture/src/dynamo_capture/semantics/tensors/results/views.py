"""Views that are made while gradients are off, and whether they require grad.

    base = torch.ones(6)
    x = base.view(2, 3).requires_grad_()    a leaf, and a view of a tensor that does not require grad
    with torch.no_grad():
        row = x[0]                          does not require grad, since the base does not

A view without a history of its own requires grad if its base does. A trace takes an input for a tensor that is no view,
whose views so do as it does. That an input is none is guarded.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from dynamo_capture.foundation.break_kinds import AUTOGRAD_STATE
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.tensors.results.outcome import Outcome, new_tensors
from dynamo_capture.sources.sources import TensorAttributeSource
from dynamo_capture.values import TensorValue
from dynamo_capture.values.base import Context
from fx_interface.source import Source


def check_followed(tx: Context, outcome: Outcome, tensors: Sequence[TensorValue]) -> None:
    """A graph break where a view is made without gradients of a leaf among the inputs that may be a view itself."""
    if torch.is_grad_enabled() or tx.levels:
        return
    for made in new_tensors(outcome.result):
        if made.view_of is not None and made.meta.requires_grad:
            root = tensors[made.view_of].root
            if root.real is not None and root.source is not None and root.meta.is_leaf:
                _check_base(tx, root.real, root.source)


def _check_base(tx: Context, leaf: torch.Tensor, source: Source) -> None:
    with torch._C.DisableTorchFunctionSubclass():
        if leaf._base is not None:
            raise GraphBreak(AUTOGRAD_STATE, "a view is made without gradients of a leaf that is a view")
    tx.guards.equals(TensorAttributeSource(source, "_base"), None)
