"""``tensor.data = other``: the tensor stays the object that it is, and shows the other one's memory from then on.

    x.data = y; x.add_(1)      ->      d = y.data; d.add_(1), and after the graph ``x.data = y``

Inside of the graph the tensor is a node that shows the memory. Autograd is not told: of a tensor that requires grad
only what follows without gradients can be computed so, and the graph ends before the rest. What ``tensor.data -= step``
sets is what the tensor shows already, and so changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.fx import Node

from dynamo_capture.foundation.break_kinds import AUTOGRAD_STATE
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.graph.graph_builder import UNFOLLOWED
from dynamo_capture.runtime import made_tensors
from dynamo_capture.semantics.tensors.hooks import check_not_hooked
from dynamo_capture.values import Const, TensorMeta, TensorValue, Value, tensors_of
from dynamo_capture.values.base import Context
from dynamo_capture.values.structures import items_of
from dynamo_capture.values.tensors.tensor import PLAIN_CLASSES


def set_data(tx: Context, owner: TensorValue, value: Value) -> None:
    """``owner.data = value``; a graph break where more than the memory would change, or others show the old one."""
    value = tx.force(value)
    if isinstance(value, TensorValue) and _is_own(owner, value):
        return
    apart = tx.policy.leaves_apart and owner.meta.requires_grad
    if apart or not isinstance(value, TensorValue) or not _may_be_shown(tx, owner, value):
        raise GraphBreak(AUTOGRAD_STATE, "the attribute 'data' of a tensor is set")
    check_not_hooked(tx, [owner])
    tx.effects.deferred(made_tensors.set_data, [owner, value], {})
    with torch.no_grad():  # with a count of writes of its own, as the owner has one
        shown = tx.tensors.get_attr(value, "data")
    assert isinstance(shown, TensorValue)
    meta = owner.meta
    tx.tensors.replaced[id(owner)] = owner
    owner.node, owner.content = shown.node, None
    owner.meta = TensorMeta.of(shown.meta.spec, meta.requires_grad, meta.is_leaf, meta.cls)
    owner.show(shown.memory)
    owner.is_replaced = True
    if meta.requires_grad:
        tx.output.unfollowed.add(shown.node)


def _is_own(owner: TensorValue, value: TensorValue) -> bool:
    """Whether ``value`` is ``owner.data``: it has been written to in place, as ``owner.data -= step`` does."""
    node = value.node
    own = isinstance(node, Node) and node.target is getattr and node.args == (owner.node, "data")
    return own and value.memory is owner.memory and value.meta.spec == owner.meta.spec


def by_data(tx: Context, call: Any) -> Value | None:
    """``w.data`` and ``w.detach()`` of a leaf whose data were replaced: the memory, which autograd does not follow. It
    would follow any other operation, here or in a region: a graph break."""
    if not tx.tensors.replaced or not torch.is_grad_enabled():
        return None
    given = [tensor for value in (*call.args, *call.kwargs.values()) for tensor in items_of(tx, value)]
    if not any(value.requires_grad and id(value) in tx.tensors.replaced for value in tensors_of(given)):
        return None
    if call.name != "detach" and not (call.function is getattr and _reads_data(call.args)):
        raise GraphBreak(AUTOGRAD_STATE, UNFOLLOWED)
    with torch.no_grad():
        return tx.tensors.operation(call.op, call.target, call.function, call.args, call.kwargs)


def _reads_data(args: list[Value]) -> bool:
    return len(args) == 2 and isinstance(args[1], Const) and args[1].value == "data"


def check_handed_out(tx: Context, value: TensorValue) -> None:
    """A graph break where a view of a leaf whose data were replaced is handed out: it is one of the data alone, and has
    to be one of the leaf."""
    base = tx.tensors.replaced.get(id(value.root))
    is_new = value.root is not value and value.memory is not value.root
    if base is not None and base.meta.requires_grad and is_new:
        raise GraphBreak(AUTOGRAD_STATE, "a view of a tensor whose data were replaced is handed out")


def _may_be_shown(tx: Context, owner: TensorValue, value: TensorValue) -> bool:
    one, other = owner.meta, value.meta
    alike = (one.spec.dtype, one.spec.device) == (other.spec.dtype, other.spec.device)
    plain = one.cls in PLAIN_CLASSES and other.cls in PLAIN_CLASSES
    inference = one.is_inference or other.is_inference
    refuses = one.requires_grad and one.is_leaf  # a write with gradients, through a view of it
    alone = owner.root is owner and owner.memory is owner and (refuses or not owner.views)
    kept = owner.source is not None and owner.real is not None and not owner.real._is_view()
    outermost = getattr(tx.output, "parent", None) is None
    return alike and plain and not inference and (alone or owner.is_replaced) and kept and outermost


def count_writes(tx: Context, written: Iterable[TensorValue]) -> None:
    """Writes count for the tensor that the program names, whose count of them stays its own."""
    for tensor in written:
        if tensor.is_replaced:
            tx.effects.deferred(torch.autograd.graph.increment_version, [tensor], {})
