"""``tensor.data = other``: the tensor stays the object that it is, and shows the other one's memory from then on.

    x.data = y; x.add_(1)      ->      d = y.data; d.add_(1), and after the graph ``x.data = y``

Inside of the graph the tensor is a node that shows the memory. Autograd is not told: a leaf that requires grad is still
the leaf that it was, and its gradient is that of what is computed with the new data. Where autograd follows, an
operation gets a copy with the leaf's history and the new content:

    w.data = v; w * x          ->      c = w.clone(); c.data.copy_(v); c * x

The copy may only be read: what writes to the data then, or hands out a view of them, ends the graph before. So does
new data of another form than the leaf's, which no copy of it can hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.fx import Node

from dynamo_capture.foundation.break_kinds import AUTOGRAD_STATE
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.runtime import made_tensors
from dynamo_capture.semantics.tensors.hooks import check_not_hooked
from dynamo_capture.values import Const, TensorMeta, TensorValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.structures import mapped_leaves
from dynamo_capture.values.tensors.tensor import PLAIN_CLASSES


class Replaced:
    """A tensor whose data the program has set. ``leaf``: as the graph got it; ``copy``: what autograd follows in its
    place, made when it is first needed."""

    __slots__ = ("copy", "leaf", "owner")

    def __init__(self, owner: TensorValue) -> None:
        self.owner = owner
        self.leaf = TensorValue(owner.node, owner.meta)
        self.copy: TensorValue | None = None


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
    known = tx.tensors.replaced.setdefault(id(owner), Replaced(owner))
    known.copy = None
    owner.node, owner.content = shown.node, None
    owner.meta = TensorMeta.of(shown.meta.spec, meta.requires_grad, meta.is_leaf, meta.cls)
    owner.show(shown.memory)
    owner.is_replaced = True
    if meta.requires_grad:  # only operations are given a copy
        tx.output.unfollowed.add(shown.node)


def _is_own(owner: TensorValue, value: TensorValue) -> bool:
    """Whether ``value`` is ``owner.data``: it has been written to in place, as ``owner.data -= step`` does."""
    node = value.node
    own = isinstance(node, Node) and node.target is getattr and node.args == (owner.node, "data")
    return own and value.memory is owner.memory and value.meta.spec == owner.meta.spec


def by_copies(tx: Context, call: Any) -> Value | None:
    """An operation that autograd follows, on tensors whose data were replaced."""
    if not tx.tensors.replaced or not torch.is_grad_enabled():
        return None
    made: list[Replaced] = []

    def copied(tensor: TensorValue) -> Value:
        found = tx.tensors.replaced.get(id(tensor))
        if found is None or not tensor.meta.requires_grad:
            return tensor
        made.append(found)
        return tensor if shows_data else _copy(tx, found)

    shows_data = call.name == "detach" or (call.function is getattr and _reads_data(call.args))
    args = [mapped_leaves(tx, value, copied) for value in call.args]
    kwargs = {name: mapped_leaves(tx, value, copied) for name, value in call.kwargs.items()}
    if not made:
        return None
    if shows_data:
        with torch.no_grad():  # the memory as it is, which autograd does not follow
            return tx.tensors.operation(call.op, call.target, call.function, args, kwargs)
    result = tx.tensors.operation(call.op, call.target, call.function, args, kwargs)
    owners = {id(found.copy): found.owner for found in made}
    return mapped_leaves(tx, result, lambda tensor: owners.get(id(tensor), tensor))


def _reads_data(args: list[Value]) -> bool:
    return len(args) == 2 and isinstance(args[1], Const) and args[1].value == "data"


def _copy(tx: Context, found: Replaced) -> TensorValue:
    """A tensor with the leaf's history and the content of its data."""
    if found.copy is None:
        if getattr(tx.output, "parent", None) is not None:
            raise GraphBreak(AUTOGRAD_STATE, "a part that is a region uses a leaf whose data were replaced")
        if found.leaf.meta.spec != found.owner.meta.spec:
            what = "a tensor that requires grad is computed with, whose data were replaced by others of another form"
            raise GraphBreak(AUTOGRAD_STATE, what)
        made = tx.tensors.call_function(torch.clone, [found.leaf], {})
        assert isinstance(made, TensorValue)
        data = tx.tensors.get_attr(found.owner, "data")
        tx.tensors.call_method(tx.tensors.get_attr(made, "data"), "copy_", [data], {})
        found.copy = made
        tx.tensors.copies.append((made, found.owner.memory))
    return found.copy


def check_copies(tx: Context, written: Iterable[TensorValue]) -> None:
    """A graph break where a copy, or what was copied, is written to."""
    memories = {id(memory) for pair in tx.tensors.copies for memory in pair}
    if any(id(tensor.memory) in memories for tensor in written):
        raise GraphBreak(AUTOGRAD_STATE, "a leaf whose data were replaced is written to after it was used")


def check_handed_out(tx: Context, value: TensorValue) -> None:
    """A graph break where a view of a leaf whose data were replaced is handed out: it is one of the copy or of the data
    alone, and has to be one of the leaf."""
    base = tx.tensors.replaced.get(id(value.root))
    is_new = value.root is not value and value.memory is not value.root
    of_data = base is not None and base.owner.meta.requires_grad and is_new
    if of_data or any(value.memory is copy for copy, _ in tx.tensors.copies):
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
