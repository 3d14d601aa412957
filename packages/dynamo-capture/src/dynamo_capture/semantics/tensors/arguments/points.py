"""Indices that stand for all points at once: ``bias[h, q]`` where ``h`` and ``q`` are tensors without dimensions.

Elsewhere torch takes such a tensor as the number in it. What is computed of each score of an attention may not: there
the element is read by an operator on tensors. An index of some dimensions, ``bias[h]``, is one too; if it is indexed
again, both are one: then no tensor with dimensions is in between.
"""

from __future__ import annotations

import torch

from dynamo_capture.values import Const, ListValue, TensorValue, TupleValue, Value, tensors_of
from dynamo_capture.values.base import Context

_INDEX = torch.ops.aten.index.Tensor
_INTEGERS = frozenset({torch.int64, torch.int32})


def element(tx: Context, owner: TensorValue, key: Value) -> Value | None:
    """``owner[key]`` by tensors; None for a key that holds other things than integers."""
    items = [tx.force(item) for item in key.items] if isinstance(key, TupleValue) else [key]
    if not items or len(items) > len(owner.meta.spec.sizes) or not all(map(_is_integer, items)):
        return None
    if not tensors_of(items):
        return None
    indices = [_as_tensor(tx, owner, item) for item in items]
    node = owner.node
    if node.target is _INDEX and node.graph is tx.output.graph:
        before = tx.output.indexed.get(node)
        if before is not None:
            owner, indices = before[0], [*before[1], *indices]
    found = tx.tensors.call_function(_INDEX, [owner, ListValue(list(indices))], {})
    if isinstance(found, TensorValue) and found.meta.spec.sizes:
        tx.output.indexed[found.node] = (owner, indices)
    return found


def _is_integer(item: Value) -> bool:
    if isinstance(item, TensorValue):
        return not item.meta.spec.sizes and item.meta.spec.dtype in _INTEGERS
    return item.expr is not None or item.known_as(int) is not None


def _as_tensor(tx: Context, owner: TensorValue, item: Value) -> Value:
    if isinstance(item, TensorValue):
        return item
    options: dict[str, Value] = {"dtype": Const(torch.int64), "device": Const(owner.meta.spec.device)}
    return tx.tensors.call_function(torch.full, [TupleValue([]), item], options)
