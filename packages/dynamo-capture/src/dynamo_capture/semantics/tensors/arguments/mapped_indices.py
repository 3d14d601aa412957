"""Indices that differ between the slices of a ``vmap``: ``x[i, :, j]`` where ``i`` is a slice without dimensions.

Elsewhere torch takes such a tensor as the number in it. Of one that is mapped it has many, and indexes by the tensor.
Here it gets a dimension, which the result loses again where no other index has one:

    x[:, i] -> x[:, i.unsqueeze(0)].squeeze(1)
"""

from __future__ import annotations

import torch
from torch.fx import Node

from dynamo_capture.graph.graph_builder import GraphOutput
from dynamo_capture.graph.region_body import Body
from dynamo_capture.values import Const, ListValue, SliceValue, TensorValue, TupleValue, Value
from dynamo_capture.values.base import Context
from fx_interface.python_runtime.quick_dataclasses import dataclass

_INTEGERS = frozenset({torch.int8, torch.int16, torch.int32, torch.int64})


@dataclass(frozen=True, slots=True)
class Unmapped:
    """A key without such indices, the dimension of one item that the result has more, and how many come behind it."""

    key: Value
    extra: int | None
    behind: int = 0

    def of_result(self, tx: Context, result: Value) -> Value:
        """What the program gets."""
        return result if self.extra is None else result.call_method(tx, "squeeze", [Const(self.extra)], {})

    def stored(self, tx: Context, value: Value) -> Value:
        """What the program stores there."""
        rank = len(value.meta.spec.sizes) if isinstance(value, TensorValue) else 0
        if self.extra is None or rank <= self.behind:
            return value
        return value.call_method(tx, "unsqueeze", [Const(rank - self.behind)], {})


def unmapped(tx: Context, owner: TensorValue, key: Value) -> Unmapped | None:
    """The key with a dimension for each index that is mapped; None where there is none, or a mask of no dimension."""
    if not isinstance(tx.output, Body):
        return None
    items = [tx.force(item) for item in key.items] if isinstance(key, TupleValue) else [key]
    mapped = [place for place, item in enumerate(items) if _is_mapped(tx.output, item)]
    if not mapped or any(item.index_width() is None or _is_truth(item) for item in items):
        return None
    others = [item for place, item in enumerate(items) if place not in mapped]
    extra, behind = (None, 0) if any(map(_has_dimensions, others)) else _place_of_result(owner, items, mapped)
    for place in mapped:
        items[place] = items[place].call_method(tx, "unsqueeze", [Const(0)], {})
    return Unmapped(TupleValue(items), extra, behind)


def _has_dimensions(item: Value) -> bool:
    return isinstance(item, ListValue) or (isinstance(item, TensorValue) and bool(item.meta.spec.sizes))


def _place_of_result(owner: TensorValue, items: list[Value], mapped: list[int]) -> tuple[int, int]:
    """The dimension that tensors as indices give, and how many come behind it: where they stand, if they stand
    together, else the first."""
    rest = len(owner.meta.spec.sizes) - sum(
        width for item in items if (width := item.index_width()) is not ...
    )
    before, found, apart = 0, -1, False
    for place, item in enumerate(items):
        if place in mapped:
            apart = apart or 0 <= found < before
            found = before if found < 0 else found
        else:
            before += rest if item.index_width() is ... else int(item.index_width() == 0 or _is_slice(item))
    kept = before if any(item.index_width() is ... for item in items) else before + rest
    return (0, kept) if apart else (found, kept - found)


def _is_truth(item: Value) -> bool:
    return isinstance(item, Const) and isinstance(item.value, bool)


def _is_slice(item: Value) -> bool:
    return isinstance(item, SliceValue) or (isinstance(item, Const) and isinstance(item.value, slice))


def _is_mapped(output: Body, item: Value) -> bool:
    return (
        isinstance(item, TensorValue)
        and not item.meta.spec.sizes
        and item.meta.spec.dtype in _INTEGERS
        and _differs(output, item.node)
    )


def _differs(output: GraphOutput, node: Node) -> bool:
    """Whether the value of a node depends on the slices of a ``vmap`` that the graph is a part of."""
    if not isinstance(output, Body):
        return False
    pending, seen = [output.use(node)], set[Node]()
    outside = {inner: outer for outer, inner in output.lifted.items()}
    while pending:
        one = pending.pop()
        if one in seen:
            continue
        seen.add(one)
        if one in output.parameters and output.is_mapped:
            return True
        if one in outside and _differs(output.parent, outside[one]):
            return True
        pending.extend(one.all_input_nodes)
    return False
