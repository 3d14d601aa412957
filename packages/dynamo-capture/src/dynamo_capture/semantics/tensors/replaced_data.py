"""``tensor.data = other``: the tensor stays the object that it is, and shows the other one's memory from then on.

    x.data = y; x.add_(1)      ->      d = y.data; d.add_(1), and after the graph ``x.data = y``

Inside of the graph the tensor is a node that shows the memory. Autograd is not told: of a tensor that requires grad
only what follows without gradients can be computed so, and the graph ends before the rest.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from dynamo_capture.foundation.break_kinds import AUTOGRAD_STATE
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.runtime import made_tensors
from dynamo_capture.semantics.tensors.hooks import check_not_hooked
from dynamo_capture.values import TensorMeta, TensorValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.tensor import PLAIN_CLASSES


def set_data(tx: Context, owner: TensorValue, value: Value) -> None:
    """``owner.data = value``; a graph break where more than the memory would change, or others show the old one."""
    value = tx.force(value)
    if not isinstance(value, TensorValue) or not _may_be_shown(tx, owner, value):
        raise GraphBreak(AUTOGRAD_STATE, "the attribute 'data' of a tensor is set")
    check_not_hooked(tx, [owner])
    tx.effects.deferred(made_tensors.set_data, [owner, value], {})
    with torch.no_grad():  # with a count of writes of its own, as the owner has one
        shown = tx.tensors.get_attr(value, "data")
    assert isinstance(shown, TensorValue)
    meta = owner.meta
    owner.node, owner.content = shown.node, None
    owner.meta = TensorMeta.of(shown.meta.spec, meta.requires_grad, meta.is_leaf, meta.cls)
    owner.show(shown.memory)
    owner.is_replaced = True
    if meta.requires_grad:
        tx.output.unfollowed.add(shown.node)


def _may_be_shown(tx: Context, owner: TensorValue, value: TensorValue) -> bool:
    one, other = owner.meta, value.meta
    alike = (one.spec.dtype, one.spec.device) == (other.spec.dtype, other.spec.device)
    plain = one.cls in PLAIN_CLASSES and other.cls in PLAIN_CLASSES
    inference = one.is_inference or other.is_inference
    alone = owner.root is owner and owner.memory is owner and not owner.views
    kept = owner.source is not None and owner.real is not None and not owner.real._is_view()
    written = any(memory is owner for memory in tx.output.overwritten)
    outermost = getattr(tx.output, "parent", None) is None
    return (
        alike
        and plain
        and not inference
        and (alone or owner.is_replaced)
        and kept
        and not written
        and outermost
    )


def count_writes(tx: Context, written: Iterable[TensorValue]) -> None:
    """Writes count for the tensor that the program names, whose count of them stays its own."""
    for tensor in written:
        if tensor.is_replaced:
            tx.effects.deferred(torch.autograd.graph.increment_version, [tensor], {})
