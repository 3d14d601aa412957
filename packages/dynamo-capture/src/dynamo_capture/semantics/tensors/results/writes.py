"""What is known of the memory that an operation writes to: whose it is, and whether torch may refuse the write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import UNTRACEABLE
from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.graph.graph_builder import is_given
from dynamo_capture.semantics.tensors.results.given_views import refusal
from dynamo_capture.values import TensorValue
from dynamo_capture.values.base import Context


def may_be_refused(written: Sequence[TensorValue], tensors: Sequence[TensorValue]) -> bool:
    """Whether torch may refuse a write: several elements lie at one place, another argument lies
    there, or it is a view of a custom function's that was inlined."""
    return any(
        any(one is not tensor and one.memory is tensor.memory for one in tensors)
        or any(
            stride == 0 and size != 1
            for stride, size in zip(tensor.meta.spec.strides, tensor.meta.spec.sizes, strict=True)
        )
        or (tensor.memory is not tensor and not tensor.meta.spec.is_contiguous)
        or tensor.refuses_writes is None
        for tensor in written
    )


def forget_counts(counts: dict[object, Any], written: Sequence[TensorValue]) -> None:
    """Masks that share memory with what is ``written`` (or may, where both were there before the graph) have another
    number of set elements than ``counts`` says; where that is unknown, all."""
    memories = [one.memory for one in written]
    is_any_given = any(map(is_given, memories))
    for mask in list(counts):
        memory = mask.memory if isinstance(mask, TensorValue) and written else None
        if memory is None or (is_any_given and is_given(memory)) or any(memory is one for one in memories):
            del counts[mask]


def renews_history(tensors: Sequence[TensorValue], written: Sequence[object]) -> bool:
    """Whether torch makes a view's record anew where an operation reads it, as its memory is among the ``written``:
    before, it refuses to write to the view. So the operation counts even if nothing uses what it gives."""
    if not written or not torch.is_grad_enabled():
        return False
    return any(
        tensor.meta.requires_grad
        and (tensor is not tensor.memory or bool(tensor.views))
        and any(tensor.memory is memory for memory in written)
        for tensor in tensors
    )


def check_refused_views(tx: Context, written: Sequence[TensorValue], tensors: Sequence[TensorValue]) -> None:
    """Where autograd is to follow a write to a view, and refuses it: a RuntimeError of the program if the view is known
    to be a custom function's result. A graph break if it is one of a tensor that was made a leaf here, of a function
    that gives several views (``x.unbind()[0].mul_(2)``), or was made without gradients. Torch says so at its line, with
    its own words, behind all effects of the program until then."""
    if not torch.is_grad_enabled():
        return
    if any(map(_is_view_of_new_leaf, written)):
        raise GraphBreak(UNTRACEABLE, "a view of a leaf, whose gradient is asked for, is written to")
    refused = [one for one in written if one.refuses_writes]
    if refused and any(one.meta.requires_grad for one in tensors):
        error = refusal(refused[0])
        if error is not None:
            raised = tx.exception(error)
            raised.is_refused_write = True
            raise UserRaise(raised)
        raise GraphBreak(UNTRACEABLE, "a view is written to whose writes autograd does not follow")


def _is_view_of_new_leaf(tensor: TensorValue) -> bool:
    root = tensor.root
    return root is not tensor and root.source is None and root.meta.is_leaf and root.meta.requires_grad


def check_resized(resized: Sequence[TensorValue]) -> None:
    """A graph break where ``out=`` resizes what others may show."""
    if not all(map(_is_own_memory, resized)):
        raise GraphBreak(
            UNTRACEABLE, "out= resizes a tensor from outside of the graph, a view, or one that has views"
        )


def _is_own_memory(tensor: TensorValue) -> bool:
    """Whether the graph has made a tensor and its memory, which no other tensor shows."""
    is_made = tensor.source is None and tensor.root is tensor and tensor.memory is tensor
    return is_made and not tensor.is_shown
