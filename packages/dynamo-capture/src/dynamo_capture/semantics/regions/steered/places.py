"""A loop over the places where a mask is true goes over all places, where nobody can tell.

    for e in (mask.sum(1) > 0).nonzero():          # for e in range(len(mask)): where e is no such place, the mask has
        rows, = torch.where(mask[e])               # no rows there, and nothing is written
        out.index_add_(0, rows, experts[e](x[rows]))

That there are no rows then the graph states: where it does not hold, the frame runs as it was written.
"""

from __future__ import annotations

import operator
from typing import Any, Final

import torch
from torch.fx import Node

from dynamo_capture.foundation.break_kinds import DATA_NUMBER
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.graph.region_body import Body
from dynamo_capture.semantics.regions.steered.empty_branches import rows_of_write
from dynamo_capture.semantics.tensors.content.data_numbers import assume_true
from dynamo_capture.values import (
    Const,
    IteratorStop,
    IteratorValue,
    ListValue,
    SymValue,
    TensorValue,
    TupleValue,
    Value,
    one_tensor,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.containers.late_sequences import NumberList
from fx_interface.symbols import symbol
from fx_interface.tensor_spec import SPEC_KEY, TensorSpec

_MOST_PLACES: Final = 16
_FORMS: Final = frozenset({"squeeze", "flatten", "view", "reshape"})
"""Methods that leave the order of elements as it is."""


class Places:
    """The places where a mask is true, of ``count`` that it has: the tensor of these, and what the loop gives for each
    of all."""

    __slots__ = ("count", "given", "tensor")

    def __init__(self, tensor: TensorValue, count: int, given: list[Value]) -> None:
        self.tensor = tensor
        self.count = count
        self.given = given

    def are_true(self, tx: Context) -> TensorValue:
        """Whether each of all places is one of them."""
        device = Const(self.tensor.meta.spec.device)
        rows = self.tensor.call_method(tx, "reshape", [TupleValue([Const(-1), Const(1)])], {})
        all_places = tx.tensors.call_function(torch.arange, [Const(self.count)], {"device": device})
        found = tx.tensors.call_function(torch.eq, [rows, all_places], {})
        return one_tensor(found.call_method(tx, "any", [Const(0)], {}))


class PlacesIterator(IteratorValue):
    """Over all places. ``written``: which of the operations of each round write."""

    __slots__ = ("_begin", "_claims", "_position", "places", "true", "written")
    python_class = type(iter(()))

    def __init__(self, places: Places, written: list[list[int]], true: TensorValue) -> None:
        self.places = places
        self.written = written
        self.true = true
        self._position = 0
        self._begin: Node | None = None
        self._claims: list[Value] = []

    def children(self, tx: Context) -> list[Value]:
        raise GraphBreak(DATA_NUMBER, "a loop over the places where a mask is true is left half-way")

    def next(self, tx: Context) -> Value:
        nodes = tx.output.graph.nodes
        if self._position:
            self._claim(tx, [node for node in _behind(nodes, self._begin) if node.op.startswith("call")])
        if self._position == self.places.count:
            self._state(tx)
            raise IteratorStop
        self._position += 1
        self._begin = next(iter(reversed(nodes)), None)
        return self.places.given[self._position - 1]

    def _claim(self, tx: Context, calls: list[Node]) -> None:
        """What has been done in this round was to be done, or has been nothing."""
        number = self._position - 1
        for place in self.written[number]:
            rows = rows_of_write(calls[place])
            if rows is None:
                raise GraphBreak(DATA_NUMBER, "a round of a loop was traced in two ways")
            size = SymValue(symbol(rows.name))
            count = tx.tensors.call_function(
                torch.full, [TupleValue([]), size], {"dtype": Const(torch.int64)}
            )
            none = tx.tensors.call_function(torch.eq, [count, Const(0)], {})
            is_true = self.true.get_item(tx, Const(number))
            self._claims.append(tx.tensors.call_function(torch.logical_or, [is_true, none], {}))

    def _state(self, tx: Context) -> None:
        claims, self._claims = self._claims, []
        if claims:
            all_hold = one_tensor(tx.tensors.call_function(torch.stack, [ListValue(claims)], {}))
            assume_true(tx, one_tensor(all_hold.call_method(tx, "all", [], {})))


def _behind(nodes: Any, last: Node | None) -> list[Node]:
    found: list[Node] = []
    for node in reversed(nodes):
        if node is last:
            break
        found.append(node)
    return found[::-1]


def places_of(tx: Context, owner: Value) -> Places | None:
    """The places of a mask that a value has, if a loop may go over all instead."""
    tensor = owner.tensor if isinstance(owner, NumberList) and owner.is_unread else owner
    if (
        not isinstance(tensor, TensorValue)
        or tensor.meta.cls is not torch.Tensor
        or tensor.content is not None
    ):
        return None
    output, spec = tx.output, tensor.meta.spec
    if isinstance(output, Body) or output.lasts or output.is_watched() or not tx.inference.follows_data:
        return None
    is_flat = spec.rank == 1
    if spec.device.type != "cpu" or not (is_flat or (spec.rank == 2 and spec.sizes[1] == 1)):
        return None
    if any(one is tensor.memory for one in output.overwritten):
        return None
    count = _length_of_mask(tensor.node)
    if count is None or count > _MOST_PLACES or (tensor is not owner and not is_flat):
        return None
    given: list[Value] = []
    for place in range(count):
        number: Value = Const(place)
        if tensor is owner:
            item = number if is_flat else ListValue([number])
            number = tx.tensors.call_function(torch.tensor, [item], {})
            tx.tensors.stand_ins.append(one_tensor(number))
        given.append(number)
    return Places(tensor, count, given)


def _length_of_mask(node: Node) -> int | None:
    """How long the mask is whose places a node gives."""
    if node.op == "call_method" and node.target in _FORMS and isinstance(node.args[0], Node):
        node = node.args[0]
    if node.target is operator.getitem and node.args[1:] == (0,) and isinstance(node.args[0], Node):
        node = node.args[0]
        if node.target is not torch.where and not node.kwargs.get("as_tuple"):
            return None
    elif node.kwargs.get("as_tuple"):
        return None
    is_call = node.op.startswith("call") and len(node.args) == 1
    if not is_call or node.target not in ("nonzero", torch.nonzero, torch.where):
        return None
    (mask,) = node.args
    spec = mask.meta.get(SPEC_KEY) if isinstance(mask, Node) else None
    is_flat = isinstance(spec, TensorSpec) and spec.rank == 1
    size = spec.sizes[0] if is_flat else None  # type: ignore[union-attr]
    return size if isinstance(size, int) else None
