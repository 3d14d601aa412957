"""What autograd follows of a leaf whose data the program has set (``semantics/tensors/replaced_data.py``), or that the
program has made.

    w.data = v; y = w * x      ->      c = region(w, v), a copy of v whose gradient is that of w; y = c * x
    w = Parameter(v)           ->      before the graph w = Parameter(empty), which is an input; w.data = v

Nobody may be able to tell that it is a copy. So a view of it ends the graph, and where the leaf changes once more,
behind operations that may have saved the copy, the frame is captured again and ends its graph before them. A second
derivative runs the graph once more, when the tensors show what was set: there are no copies where the graph reads what
they held before.
"""

from __future__ import annotations

import functools
from typing import Any, Final

import torch

from dynamo_capture.foundation.break_kinds import AUTOGRAD_STATE
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.graph.graph_builder import UNFOLLOWED
from dynamo_capture.graph.region_body import Body
from dynamo_capture.runtime import made_tensors
from dynamo_capture.semantics.regions.autograd_function import gradient_parameter, open_differentiable
from dynamo_capture.semantics.regions.tracing import trace_body
from dynamo_capture.semantics.tensors.replaced_data import Replaced
from dynamo_capture.values import Const, TensorMeta, TensorValue, Value, one_tensor, tensors_of
from dynamo_capture.values.base import Context
from dynamo_capture.values.structures import items_of, mapped_leaves
from fx_interface.signature import InputKind
from fx_interface.source import LocalSource
from fx_interface.tensor_spec import with_grad

_OPTIONS: Final = {
    "dirty": (),
    "non_differentiable": (),
    "materialize": True,
    "once": False,
    "saved": 0,
    "name": "NewData",
}
"""How autograd sees the region that stands for a leaf."""


def by_data(tx: Context, call: Any) -> Value | None:
    """``w.data`` and ``w.detach()`` of a leaf whose data were replaced: the memory, which autograd does not follow. It
    would follow any other operation: that is computed of the copy, or ends the graph in a region."""
    if not tx.tensors.replaced or not torch.is_grad_enabled():
        return None
    given = [tensor for value in (*call.args, *call.kwargs.values()) for tensor in items_of(tx, value)]
    if not any(value.requires_grad and id(value) in tx.tensors.replaced for value in tensors_of(given)):
        return None
    if call.name != "detach" and not (call.function is getattr and _reads_data(call.args)):
        return _of_copies(tx, call)
    with torch.no_grad():
        return tx.tensors.operation(call.op, call.target, call.function, call.args, call.kwargs)


def _of_copies(tx: Context, call: Any) -> Value:
    """The operation on copies of the leaves' memory, of which it may not show any."""
    if isinstance(tx.output, Body) or tx.output.is_transformed or tx.levels or tx.tensors.modes or tx.blocks:
        raise GraphBreak(AUTOGRAD_STATE, UNFOLLOWED)
    copies: list[TensorValue] = []

    def change(value: Value) -> Value:
        value = tx.force(value)
        if not isinstance(value, TensorValue):
            return value.mapped(tx, change)
        replaced = tx.tensors.replaced.get(id(value))
        if replaced is None or not value.requires_grad:
            return value
        copies.append(_copied(tx, replaced))
        return copies[-1]

    args = [change(value) for value in call.args]
    kwargs = {name: change(value) for name, value in call.kwargs.items()}
    result = tx.tensors.operation(call.op, call.target, call.function, args, kwargs)

    def check(tensor: TensorValue) -> Value:
        if any(tensor.memory is copy for copy in copies):
            raise GraphBreak(AUTOGRAD_STATE, "a view of a tensor whose data were replaced is taken")
        return tensor

    mapped_leaves(tx, result, check)
    return result


def _copied(tx: Context, replaced: Replaced) -> TensorValue:
    """A copy of the new data, as the leaf. Where its gradient would be refused, as it is of another form, and where
    more is to be known about the leaf than its gradient the graph ends."""
    owner = replaced.owner
    if replaced.copy is None:
        leaf = replaced.leaf or _made_before(tx, replaced)
        is_as_before = leaf.meta.is_leaf and leaf.meta.spec == owner.meta.spec
        is_read = any(one.is_read for one in tx.tensors.replaced.values())
        if not is_as_before or is_read or owner.meta.is_inference or not tx.policy.copies_leaves:
            raise GraphBreak(AUTOGRAD_STATE, UNFOLLOWED)
        forward = Body(tx.output, "the new data of a leaf")
        forward.use(leaf.node)
        forward.pinned.add(leaf.node)
        with torch.no_grad():
            run = lambda: owner.call_method(tx, "clone", [], {})  # noqa: E731
            copy = one_tensor(trace_body(tx, forward, run, pure=True))
            backward = Body(forward, "the gradient of a leaf with new data")
            gradient = gradient_parameter(backward, copy)
        meta = TensorMeta.of(copy.meta.spec, True, False)
        (node,) = open_differentiable(tx, forward, backward, [gradient.node], [copy], [meta], dict(_OPTIONS))
        replaced.copy = TensorValue(node, meta)
        tx.tensors.stand_ins.append(replaced.copy)
    return replaced.copy


def _reads_data(args: list[Value]) -> bool:
    return len(args) == 2 and isinstance(args[1], Const) and args[1].value == "data"


def _made_before(tx: Context, replaced: Replaced) -> TensorValue:
    """The leaf that a parameter of the program is, made before the graph, which sets its data when it has run."""
    owner = replaced.owner
    spec = owner.meta.spec
    is_given = owner.memory.real is not None or owner.memory.source is not None
    if is_given or not spec.is_static or not tx.policy.copies_leaves:
        raise GraphBreak(AUTOGRAD_STATE, UNFOLLOWED)  # its writes are counted with those of another tensor
    variable = f".leaf{len(tx.tensors.leaves)}"
    make = functools.partial(made_tensors.new_leaf, spec, replaced.writes)
    source = LocalSource(variable)
    node = tx.output.placeholder("leaf", InputKind.USER, with_grad(spec, True), source, make())
    tx.tensors.leaves.append((variable, make))
    replaced.leaf = TensorValue(node, owner.meta)
    replaced.data = TensorValue(owner.node, TensorMeta.of(spec, False, True))
    replaced.data.show(owner.memory)
    owner.source, owner.is_replaced = source, True
    tx.effects.deferred(made_tensors.set_data, [owner, replaced.data], {})
    return replaced.leaf
