"""Gradients of what tensors that dispatch in Python have computed: a ``differentiable`` region behind it.

What the class makes of the operations is a part of the graph that autograd does not see into. The region takes its
results, and gives them a history: its backward is torch's own formula for the operations, run by torch's engine on the
stand-ins and taken apart in the same way. So what the class does (a rounding, say) is not differentiated itself, as in
eager.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Node

from dynamo_capture.foundation.break_kinds import DISPATCH_IN_PYTHON
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.libraries.distributed_tensors import gradient_spec, is_spec
from dynamo_capture.graph.region_body import Body
from dynamo_capture.runtime.subclass_parts import Form, Leaf, Parts, Position
from dynamo_capture.semantics.regions.autograd_function import gradient_parameter, open_differentiable
from dynamo_capture.semantics.regions.histories import history_of, parts_of_history
from dynamo_capture.semantics.regions.tracing import trace_body
from dynamo_capture.semantics.tensor_subclasses.dispatch_decomposition import TakenApart
from dynamo_capture.values import (
    Const,
    TensorMeta,
    TensorValue,
    TupleValue,
    Value,
    is_none,
    one_tensor,
    size_value,
    tensors_of,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.wrapper import WrapperValue
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.tensor_spec import is_differentiable


@dataclass(slots=True)
class Gradients:
    """A backward that has been traced: the region's bodies, and a gradient or None for each trained tensor."""

    forward: Body
    body: Body
    found: list[Value]
    parts: list[Parts | None]
    leaves: list[list[TensorValue]]
    shown: list[TensorValue]

    @property
    def are_plain(self) -> bool:
        """Whether all are plain tensors."""
        return all(parts is None for parts in self.parts)


def plain_parts(value: Value, what: str) -> list[TensorValue]:
    """The plain tensors that a tensor consists of, in order."""
    assert isinstance(value, TensorValue)
    if type(value) is not WrapperValue:
        if not is_differentiable(value.meta.spec.dtype):
            raise GraphBreak(DISPATCH_IN_PYTHON, f"{what} holds a tensor of {value.meta.spec.dtype}")
        return [value]
    if value.plain is not None:
        return plain_parts(value.plain, what)
    inner = tensors_of((value.attrs or {}).values())
    return [leaf for part in inner for leaf in plain_parts(part, what)]


def traced_gradients(
    tx: Context, apart: TakenApart, what: str, trained: Sequence[TensorValue], results: Sequence[TensorValue]
) -> Gradients:
    """The backward of ``results`` with respect to ``trained``, from gradients that are of the results' classes."""
    forward = Body(tx.output, f"{what} on tensors that dispatch in Python", may_dispatch=True)
    stand_ins = [apart.stand_in(value) for value in results]
    with torch.no_grad():
        made = trace_body(tx, forward, lambda: _carriers(tx, results, what), pure=False).unpack(tx)
    shown = tensors_of(made)
    body = Body(forward, f"the backward of {forward.what}", may_dispatch=True)
    arriving = [_arriving(tx, body, value) for value in results]
    inputs = [apart.stand_in(value) for value in trained]
    parts: list[Parts | None] = []
    leaves: list[list[TensorValue]] = []

    def run() -> Value:
        given = [apart.stand_in(gradient) for gradient in arriving]
        options = {"allow_unused": True, "retain_graph": True}
        found = apart.run_on_stand_ins(torch.autograd.grad, [stand_ins, inputs, given], options)
        owned: set[Node] = set()
        for gradient in map(tx.force, found.unpack(tx)):
            is_wrapper = isinstance(gradient, WrapperValue)
            held: list[TensorValue] = []
            form = _form(tx, body, gradient, held, owned) if is_wrapper else None
            parts.append(None if form is None else Parts(form, tuple(_leaf(tx, leaf) for leaf in held)))
            leaves.append(held if is_wrapper else [gradient] if isinstance(gradient, TensorValue) else [])
        return found

    with torch.no_grad():
        found = trace_body(tx, body, run, pure=True, passed=[*trained, *results]).unpack(tx)
    return Gradients(forward, body, [tx.force(value) for value in found], parts, leaves, shown)


def _carriers(tx: Context, results: Sequence[TensorValue], what: str) -> Value:
    """What the region gives: plain results, and for each plain tensor in a wrapper one of its form, without content."""
    made: list[Value] = []
    for value in results:
        for part in plain_parts(value, what):
            if isinstance(value, WrapperValue) and value.plain is None:
                zero = part.call_method(tx, "new_zeros", [TupleValue([])], {})
                sizes = TupleValue([size_value(size) for size in part.meta.spec.sizes])
                made.append(zero.call_method(tx, "expand", [sizes], {}))
            else:
                made.append(part.call_method(tx, "detach", [], {}))
    return TupleValue(made)


def _arriving(tx: Context, body: Body, value: TensorValue) -> TensorValue:
    """The gradient of a result: with plain tensors inside that the region is given."""
    if type(value) is not WrapperValue:
        return gradient_parameter(body, value)
    if value.plain is not None:
        return gradient_parameter(body, value.plain)
    spec = value.meta.spec
    made = WrapperValue(
        TensorMeta.of(spec, False, True, value.meta.cls), given=value.given, names=value.names
    )
    made.attrs = {name: _arriving_part(tx, body, part) for name, part in (value.attrs or {}).items()}
    return made


def _arriving_part(tx: Context, body: Body, part: Value) -> Value:
    if isinstance(part, TensorValue):
        return _arriving(tx, body, part)
    if isinstance(part, Const) and is_spec(part.value):
        return Const(gradient_spec(part.value))
    return part


def _form(tx: Context, body: Body, value: Value, leaves: list[TensorValue], owned: set[Node]) -> Form:
    """How a gradient is put together again; each of its ``leaves`` is to be a tensor of its own."""
    if not isinstance(value, WrapperValue) or value.source is not None:
        raise GraphBreak(DISPATCH_IN_PYTHON, f"{body.what} gives {value.describe()} for a gradient")
    attributes: dict[str, Any] = {}
    for name, part in (value.attrs or {}).items():
        part = tx.force(part)
        if isinstance(part, WrapperValue):
            attributes[name] = _form(tx, body, part, leaves, owned)
        elif isinstance(part, TensorValue):
            if not is_differentiable(part.meta.spec.dtype):
                raise GraphBreak(
                    DISPATCH_IN_PYTHON, f"{body.what} gives a gradient that holds {part.meta.spec.dtype}"
                )
            attributes[name] = Position(len(leaves))
            leaves.append(_owned(tx, part, owned))
        else:
            attributes[name] = _fixed(tx, part)
    given = {name: _fixed(tx, part) for name, part in zip(value.names, value.given[1:], strict=True)}
    return Form(value.meta.cls, given, attributes)


def _fixed(tx: Context, value: Value) -> Any:
    """A constant; sizes and numbers that vary are fixed, which makes a program for each."""
    value = tx.force(value)
    if isinstance(value, TupleValue):
        items = tuple(_fixed(tx, item) for item in value.items)
        return (
            items
            if value.cls is tuple
            else torch.Size(items)
            if value.cls is torch.Size
            else tx.constant(value)
        )
    return tx.constant(value) if value.expr is None else tx.env.specialize(value.expr)


def _owned(tx: Context, part: TensorValue, owned: set[Node]) -> TensorValue:
    """A gradient is kept and added to: its memory may be no other's."""
    memory = part.memory.node
    if memory.op == "placeholder" or memory.graph is not part.node.graph or memory in owned:
        made = one_tensor(part.call_method(tx, "clone", [], {}))
        part = made
    owned.add(part.memory.node)
    return part


def _leaf(tx: Context, value: TensorValue) -> Leaf:
    spec = value.meta.spec
    return Leaf(tuple(_fixed(tx, size_value(size)) for size in spec.sizes), spec.dtype, spec.device)


def attached(
    tx: Context, traced: Gradients, trained: Sequence[TensorValue], *, materialize: bool = True
) -> list[TensorValue]:
    """Put the region into the graph; what it gives, one tensor for each plain tensor in the results."""
    forward, body = traced.forward, traced.body
    pairs: dict[Node, Node] = {}
    for value, gradient, parts, leaves in zip(
        trained, traced.found, traced.parts, traced.leaves, strict=True
    ):
        if is_none(gradient):
            continue
        if parts is None:
            node = history_of(tx, value)
            assert node is not None
            places = [node]
        else:
            places = parts_of_history(tx, value, parts)
        for place, leaf in zip(places, leaves, strict=True):
            outer = forward.parent.use(place)
            if outer in pairs:
                raise GraphBreak(
                    DISPATCH_IN_PYTHON, f"{body.what} gives two gradients for {value.describe()}"
                )
            pairs[outer] = body.use(leaf.node)
    _come_first(forward, list(pairs))
    metas = [TensorMeta.of(value.meta.spec, True, False) for value in traced.shown]
    items = open_differentiable(
        tx,
        forward,
        body,
        list(pairs.values()),
        traced.shown,
        metas,
        {"once": True, "materialize": materialize},
    )
    return [TensorValue(item, meta) for item, meta in zip(items, metas, strict=True)]


def _come_first(forward: Body, nodes: list[Node]) -> None:
    """The tensors that get gradients are the first arguments of the region, in this order."""
    for node in reversed(nodes):
        place = forward.use(node)
        forward.pinned.add(node)
        first = next(iter(forward.graph.nodes))
        if first is not place:
            first.prepend(place)
