"""What an input is a view of, which what stands for it in a trace is not.

    base = torch.ones(6)
    x = base.view(2, 3).requires_grad_()    a leaf, and a view of a tensor that does not require grad
    with torch.no_grad():
        row = x[0]                          does not require grad, since the base does not

A view without a history of its own requires grad if its base does, and autograd may refuse writes to it for how it was
made. That an input is no view is guarded where it counts. Parameters are none.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from dynamo_capture.foundation.break_kinds import AUTOGRAD_STATE, UNTRACEABLE
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.tensors.results.outcome import Outcome, new_tensors
from dynamo_capture.sources.sources import TensorAttributeSource
from dynamo_capture.values import TensorValue
from dynamo_capture.values.base import Context

_creation = torch._C._autograd._get_creation_meta
_FOLLOWED = torch._C._autograd.CreationMeta.DEFAULT


def base_of(tx: Context, tensor: TensorValue) -> torch.Tensor | None:
    """What the input is a view of that a tensor leads to; None if it is no view."""
    real, source = tensor.root.real, tensor.root.source
    if real is None or source is None or tensor.root.meta.cls is torch.nn.Parameter:
        return None
    with torch._C.DisableTorchFunctionSubclass():
        base = real._base
    if base is None:
        tx.guards.equals(TensorAttributeSource(source, "_base"), None)
    return base


def check_views(tx: Context, outcome: Outcome, tensors: Sequence[TensorValue]) -> None:
    """A graph break where an input that is a view has a part in what autograd notes: a view of it is made without
    gradients, or it is written to, which autograd may refuse, or refuse to read it from then on."""
    if tx.levels:
        return
    if torch.is_grad_enabled() and not torch.is_inference_mode_enabled():
        _check_written(tx, outcome, tensors)
    else:
        _check_made(tx, outcome, tensors)


def _check_made(tx: Context, outcome: Outcome, tensors: Sequence[TensorValue]) -> None:
    for made in new_tensors(outcome.result):
        if made.view_of is not None and made.meta.requires_grad:
            base = base_of(tx, tensors[made.view_of])
            if base is not None and not base.requires_grad:
                what = "a view is made without gradients of a view, which does not require grad by itself"
                raise GraphBreak(AUTOGRAD_STATE, what)


def _check_written(tx: Context, outcome: Outcome, tensors: Sequence[TensorValue]) -> None:
    becoming = {index for index, meta in outcome.updates if meta.requires_grad}
    for index in outcome.written:
        owner = tensors[index].memory
        if (owner.meta.requires_grad or index in becoming) and not _is_writable(tx, owner):
            raise GraphBreak(UNTRACEABLE, "an input is written to whose writes autograd does not follow")


def _is_writable(tx: Context, tensor: TensorValue) -> bool:
    real = tensor.root.real
    return real is None or base_of(tx, tensor) is None or _creation(real) == _FOLLOWED
