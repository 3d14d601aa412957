"""``tensor.data = other``: the tensor stays the object that it is, and shows the other one's memory from then on.

    x.data = y; x.add_(1)      ->      d = y.data; d.add_(1), and after the graph ``x.data = y``

Inside of the graph the tensor is a node that shows the memory. Autograd is not told: of a tensor that requires grad
only what follows without gradients can be computed so, and the rest of a copy (``semantics/regions/new_data.py``), or
in another graph. What ``tensor.data -= step`` sets is what the tensor shows already, and so changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import torch
from torch.fx import Node

from dynamo_capture.foundation.break_kinds import AUTOGRAD_STATE
from dynamo_capture.foundation.errors import CapturedAnew, GraphBreak
from dynamo_capture.runtime import made_tensors
from dynamo_capture.semantics.tensors.hooks import check_not_hooked
from dynamo_capture.values import TensorMeta, TensorValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.tensor import PLAIN_CLASSES

_LIKE: Final = frozenset({"view_as", "expand_as", "reshape_as"})
"""Methods that take only the form of their second tensor."""


class Replaced:
    """A tensor whose data the program has set, or a parameter that it has made: ``leaf`` is what it was at the
    beginning, ``copy`` what has taken its place where autograd follows, ``data`` the tensor in whose memory the
    parameter was made, and ``writes`` how many writes it has counted. Of a parameter there is no leaf before autograd
    follows it."""

    __slots__ = ("copy", "data", "leaf", "owner", "writes")

    def __init__(self, owner: TensorValue, is_new: bool = False, writes: int = 0) -> None:
        self.owner = owner
        self.writes = writes
        self.leaf = None if is_new else TensorValue(owner.node, owner.meta)
        self.copy: TensorValue | None = None
        self.data: TensorValue | None = None

    @property
    def is_read(self) -> bool:
        """Whether the graph computes with what the tensor held at the beginning."""
        node = None if self.leaf is None else self.leaf.node
        return node is not None and any(
            user.target not in _LIKE or user.args[0] is node for user in node.users
        )


def set_data(tx: Context, owner: TensorValue, value: Value) -> None:
    """``owner.data = value``; a graph break where more than the memory would change, or others show the old one."""
    value = tx.force(value)
    if isinstance(value, TensorValue) and _is_own(owner, value):
        return
    replaced = tx.tensors.replaced.get(id(owner)) or Replaced(owner)
    _check_not_copied(tx, [owner], replaced.is_read)
    apart = tx.policy.leaves_apart and owner.meta.requires_grad
    if apart or not isinstance(value, TensorValue) or not _may_be_shown(tx, owner, value):
        raise GraphBreak(AUTOGRAD_STATE, "the attribute 'data' of a tensor is set")
    check_not_hooked(tx, [owner])
    tx.effects.deferred(made_tensors.set_data, [owner, value], {})
    with torch.no_grad():  # with a count of writes of its own, as the owner has one
        shown = tx.tensors.get_attr(value, "data")
    assert isinstance(shown, TensorValue)
    meta = owner.meta
    tx.tensors.replaced[id(owner)] = replaced
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


def _check_not_copied(tx: Context, changed: Iterable[TensorValue], is_read: bool = False) -> None:
    """Captures the frame again, without copies, if a leaf changes behind the use of one: what a backward finds of the
    leaf then, and whether it is refused, is not what the copy says. ``is_read``: the graph has used the old data."""
    memories = [one.owner.memory for one in tx.tensors.replaced.values() if one.copy is not None]
    if memories and (is_read or any(one.memory is memory for one in changed for memory in memories)):
        tx.policy.leave_copies()
        raise CapturedAnew


def check_handed_out(tx: Context, value: TensorValue) -> None:
    """A graph break where a view of a leaf whose data were replaced is handed out: it is one of the data alone, and has
    to be one of the leaf; and where another tensor in the memory of a parameter that was made is: it has to count
    writes together with that."""
    base = tx.tensors.replaced.get(id(value.root))
    is_new = value.root is not value and value.memory is not value.root
    if base is not None and base.owner.is_replaced and base.owner.meta.requires_grad and is_new:
        raise GraphBreak(AUTOGRAD_STATE, "a view of a tensor whose data were replaced is handed out")
    for one in tx.tensors.replaced.values() if tx.tensors.leaves else ():
        if one.data is None or value.memory is not one.data.memory:
            continue
        if value is not one.data and value is not one.owner:
            raise GraphBreak(AUTOGRAD_STATE, "a tensor in the memory of a parameter is handed out")


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


def count_writes(tx: Context, written: list[TensorValue]) -> None:
    """Writes count for the tensor that the program names, whose count of them stays its own."""
    if tx.tensors.replaced:
        _check_not_copied(tx, written)
    for tensor in written:
        if id(tensor) in tx.tensors.replaced:
            tx.tensors.replaced[id(tensor)].writes += 1
        if tensor.is_replaced:
            tx.effects.deferred(torch.autograd.graph.increment_version, [tensor], {})
