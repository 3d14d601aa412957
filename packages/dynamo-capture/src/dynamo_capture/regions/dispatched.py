"""An operation on tensors that dispatch in Python, differentiated: one ``differentiable`` region.

Its forward is what the class makes of the operation; its backward is torch's own formula for the operation, taken apart
in the same way. So what the class does (a rounding, say) is not differentiated itself, as in eager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from dynamo_capture.errors import GraphBreak
from dynamo_capture.regions.autograd_function import gradient_parameter, open_differentiable
from dynamo_capture.regions.body import Body
from dynamo_capture.regions.function_context import is_none
from dynamo_capture.regions.histories import history_of
from dynamo_capture.regions.tracing import trace_body
from dynamo_capture.tensors.taken_apart import TakenApart
from dynamo_capture.values import ListValue, TensorMeta, TensorValue, TupleValue, Value

if TYPE_CHECKING:
    from dynamo_capture.trace import Trace


def differentiated(
    tx: Trace,
    function: Callable[..., Any],
    name: str,
    tensors: list[TensorValue],
    args: list[Value],
    kwargs: dict[str, Value],
) -> Value:
    """``function(*args, **kwargs)``, where some of its ``tensors`` require grad."""
    outer, apart = tx.output, TakenApart(tx, hides_grad=True)
    trained = list({id(t): t for t in tensors if t.meta.requires_grad}.values())
    forward = Body(outer, f"{name} on a tensor that dispatches in Python", may_dispatch=True)
    histories = [outer.use(node) for value in trained if (node := history_of(tx, value)) is not None]
    for node in histories:
        forward.use(node)
        forward.pinned.add(node)
    result = trace_body(tx, forward, lambda: apart.run(function, args, kwargs), pure=False)
    results = _results(tx, forward, result)
    stand_ins = [apart.stand_in(value) for value in results]
    backward, gradients = _backward(tx, apart, forward, trained, histories, results, stand_ins)
    metas = [
        TensorMeta.of(value.meta.spec, real.requires_grad, not real.requires_grad)
        for value, real in zip(results, stand_ins, strict=True)
    ]
    options = {
        "non_differentiable": tuple(i for i, meta in enumerate(metas) if not meta.requires_grad),
        "once": True,
    }
    items = open_differentiable(tx, forward, backward, gradients, results, metas, options)
    made = {
        id(value): TensorValue(item, meta) for value, item, meta in zip(results, items, metas, strict=True)
    }
    return _replaced(tx, result, made)


def _results(tx: Trace, forward: Body, result: Value) -> list[TensorValue]:
    """The tensors that an operation gives; those of a region are new."""
    result = tx.force(result)
    if isinstance(result, (TupleValue, ListValue)):
        return [tensor for item in result.items for tensor in _results(tx, forward, item)]
    if not isinstance(result, TensorValue):
        return []
    is_new = result.node.graph is forward.graph and result.memory.node.graph is forward.graph
    if not is_new or forward.outside:
        raise GraphBreak("CAP249", f"{forward.what} gives or writes to an existing tensor")
    return [result]


def _backward(
    tx: Trace,
    apart: TakenApart,
    forward: Body,
    trained: list[TensorValue],
    histories: list[Node],
    results: list[TensorValue],
    stand_ins: list[Any],
) -> tuple[Body, list[Node | None]]:
    """The backward's body, and its gradient for each of the forward's pinned arguments."""
    body = Body(forward, f"the backward of {forward.what}", may_dispatch=True)
    arriving = [gradient_parameter(body, value) for value in results]
    followed = [(real, g) for real, g in zip(stand_ins, arriving, strict=True) if real.requires_grad]
    inputs = [apart.stand_in(value) for value in trained]

    def run() -> Value:
        given = [apart.stand_in(gradient) for _, gradient in followed]
        return apart.run_on_stand_ins(
            torch.autograd.grad, [[real for real, _ in followed], inputs, given], {"allow_unused": True}
        )

    found = trace_body(tx, body, run, pure=True, passed=[*trained, *results]).unpack(tx) if followed else []
    nodes: dict[Node, Node | None] = {outer: None for outer in forward.lifted if outer in forward.pinned}
    for history, gradient in zip(histories, map(tx.force, found), strict=False):
        if not is_none(gradient):
            nodes[history] = body.use(_plain(gradient, body, nodes[history]).node)
    return body, list(nodes.values())


def _plain(gradient: Value, body: Body, known: Node | None) -> TensorValue:
    """A gradient as the graph can hold it: one plain tensor for each tensor that gets one."""
    if type(gradient) is not TensorValue or known is not None:
        raise GraphBreak("CAP249", f"{body.what} gives {gradient.describe()} for a gradient")
    return gradient


def _replaced(tx: Trace, value: Value, made: dict[int, TensorValue]) -> Value:
    """A result with its tensors replaced by those of the outer graph."""
    value = tx.force(value)
    if isinstance(value, TupleValue):
        return TupleValue([_replaced(tx, item, made) for item in value.items], value.cls)
    if isinstance(value, ListValue):
        return ListValue([_replaced(tx, item, made) for item in value.items])
    return made.get(id(value), value)
