"""``torch.autograd.Function.apply``: forward and backward become the two sub-graphs of one ``differentiable`` region.

The backward is traced right after the forward, on gradients of the results' form: what it uses of the forward
(attributes of ``ctx``, anything it closes over) is saved, and all saved tensors if it asks for them, but nothing else.
Where torch would not call the backward (gradients are off, or no argument requires grad) the forward is inlined.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, Final

import torch
from torch.autograd.function import once_differentiable
from torch.fx import Node

from dynamo_capture.foundation.break_kinds import AUTOGRAD_FUNCTION
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.graph.graph_builder import GraphOutput
from dynamo_capture.graph.region_body import Body
from dynamo_capture.semantics.modes.modes import set_grad
from dynamo_capture.semantics.regions.function_context import FunctionContext
from dynamo_capture.semantics.regions.histories import history_of
from dynamo_capture.semantics.regions.tracing import call_region, trace_body
from dynamo_capture.semantics.regions.transforms.body import TransformBody
from dynamo_capture.semantics.registry import handles
from dynamo_capture.semantics.tensors.results.given_views import GIVEN_AS_VIEW
from dynamo_capture.values import NONE, TensorMeta, TensorValue, TupleValue, Value, is_none, tensors_of
from dynamo_capture.values.base import Context
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.regions import differentiable
from fx_interface.tensor_spec import TensorSpec, contiguous_strides, is_differentiable, with_grad

Function = torch.autograd.Function
_MOST_IN_A_GRAPH: Final = 4_000
"""Each call is traced by itself, forward and backward, which takes a hundred times as long as a call of an operator. A
loop of more rounds than that runs in Python."""


@dataclass(slots=True)
class _Call:
    """One call: what it is given, and what is learnt of it. ``again``: it is made in a backward, which is
    recorded at most when it runs; ``outputs`` are all values that the forward returned; ``fails``: what torch says
    of what the backward returns; ``saved``: how many of the first values that it needs autograd saves, all if None."""

    cls: Any
    owner: Value
    given: list[Value]
    ctx: FunctionContext
    again: bool = False
    outputs: list[Value] = field(default_factory=list)
    is_tuple: bool = False
    fails: str = ""
    saved: int | None = 0

    @property
    def results(self) -> list[TensorValue]:
        """The tensors among the outputs."""
        return tensors_of(self.outputs)

    def refuse(self, why: str) -> GraphBreak:
        """The break for a form that eager has to handle."""
        return GraphBreak(AUTOGRAD_FUNCTION, f"{self.cls.__name__} {why}")


@handles(Function.apply.__func__)  # type: ignore[attr-defined]
def apply(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    owner, *given = args
    cls = tx.constant(owner)
    if len(tx.output.bodies) > 2 * _MOST_IN_A_GRAPH:
        what = (
            f"{cls.__name__}.apply() is called when the graph has {_MOST_IN_A_GRAPH} calls of such functions"
        )
        raise GraphBreak(AUTOGRAD_FUNCTION, what, as_written=True)
    given = _with_defaults(tx, cls, given, kwargs)
    again = tx.output.may_be_recorded
    needs = [isinstance(v, TensorValue) and (v.meta.requires_grad or again) for v in given]
    call = _Call(cls, owner, [tx.force(v) for v in given], FunctionContext(cls, needs), again)
    if tx.levels:
        raise call.refuse("is called where transforms of torch.func are at work around the function")
    if tx.tensors.duals is not None and tx.tensors.duals.changes:
        raise call.refuse("is called beside dual tensors, where its jvp is asked")
    _check_surroundings(call, tx.output)
    if any(needs) and (torch.is_grad_enabled() or again):
        return _region(tx, call)
    enabled = torch.is_grad_enabled()
    set_grad(tx, False)
    try:
        _run_forward(tx, call)
        call.outputs = [_alias(tx, value, call) for value in call.outputs]
    finally:
        set_grad(tx, enabled)
    for made in call.results:
        if made.refuses_writes:  # as a custom function's, of which torch has other words
            made.refuses_writes = None
    return _returned(call, call.outputs)


def _check_surroundings(call: _Call, output: GraphOutput) -> None:
    """Refuses what the parts around the call would make of it in another way than its forward and backward say."""
    while isinstance(output, Body):
        rule = output.own_rule if isinstance(output, TransformBody) else ""
        if rule == "jvp" or (rule == "vmap" and not call.cls.generate_vmap_rule):
            raise call.refuse(f"is called inside of {output.what}, where its {rule} is asked")
        if output.derives is call.cls:
            raise call.refuse("is called in its own backward")
        output = output.parent


def _with_defaults(tx: Context, cls: Any, given: list[Value], kwargs: dict[str, Value]) -> list[Value]:
    """The arguments of the form with ``setup_context``, whose forward has an ordinary signature."""
    if not _has_setup(cls):
        if kwargs:
            raise GraphBreak(
                AUTOGRAD_FUNCTION, f"{cls.__name__}.apply() gets keyword arguments, which it does not take"
            )
        return given
    if kwargs and not _takes_keywords():
        raise GraphBreak(
            AUTOGRAD_FUNCTION,
            f"{cls.__name__}.apply() gets keyword arguments, which this version of torch does not take",
        )
    try:
        bound = inspect.signature(cls.forward).bind(*given, **kwargs)
    except TypeError as error:
        raise GraphBreak(AUTOGRAD_FUNCTION, f"{cls.__name__}.apply(): {error}") from None
    bound.apply_defaults()
    if bound.kwargs:
        raise GraphBreak(AUTOGRAD_FUNCTION, f"the forward of {cls.__name__} has keyword-only arguments")
    return [value if isinstance(value, Value) else tx.known(value) for value in bound.args]


class _Keyword(Function):
    """Tells what torch does with keywords."""

    @staticmethod
    def forward(given: Any) -> Any:
        return given

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass


@functools.cache
def _takes_keywords() -> bool:
    """Whether this version of torch binds keywords to the forward's parameters."""
    try:
        _Keyword.apply(given=None)  # type: ignore[no-untyped-call]
    except TypeError:
        return False
    return True


def _has_setup(cls: Any) -> bool:
    return cls.setup_context is not Function.setup_context


def _run_forward(tx: Context, call: _Call) -> Value:
    forward = call.owner.get_attr(tx, "forward")
    setup = call.owner.get_attr(tx, "setup_context")
    if _has_setup(call.cls):
        result = forward.call(tx, list(call.given), {})
        setup.call(tx, [call.ctx, TupleValue(list(call.given)), result], {})
    else:
        result = forward.call(tx, [call.ctx, *call.given], {})
    call.is_tuple = isinstance(result, TupleValue) and issubclass(result.cls, tuple)
    call.outputs = [tx.force(v) for v in result.items] if isinstance(result, TupleValue) else [result]
    return result


def _alias(tx: Context, value: Value, call: _Call) -> Value:
    """An argument that is returned as it is comes back as another tensor with the same memory."""
    if isinstance(value, TensorValue) and _is_in(value, call.given) and not _is_in(value, call.ctx.dirty):
        return value.call_method(tx, "detach", [], {})
    return value


def _is_in(value: Value, values: Sequence[Value]) -> bool:
    return any(value is other for other in values)


def _returned(call: _Call, outputs: list[Value]) -> Value:
    return TupleValue(outputs) if call.is_tuple else outputs[0]


def _region(tx: Context, call: _Call) -> Value:
    outer = tx.output
    forward = Body(outer, f"{call.cls.__name__}.forward", may_dispatch=True)
    for value in call.given:
        node = history_of(tx, value) if isinstance(value, TensorValue) else None
        if node is not None:
            forward.use(node)
            forward.pinned.add(outer.use(node))
    with torch.no_grad():
        trace_body(tx, forward, lambda: _run_forward(tx, call), pure=False)
        _check_forward(call, forward)
        backward, gradients = _trace_backward(tx, call, forward)
    for warning in call.ctx.warnings:
        tx.outside.warns(tx.wrapping)
        tx.effects.deferred(warning, [], {}, is_note=True)
    return _open(tx, call, forward, backward, gradients)


def _check_forward(call: _Call, forward: Body) -> None:
    ctx, results = call.ctx, call.results
    for value in ctx.dirty:
        if not isinstance(value, TensorValue) or not _is_in(value, call.given) or not _is_in(value, results):
            raise call.refuse("marks what is no argument that it returns as dirty")
        if value.memory is not value or value.views or (value.meta.is_leaf and value.meta.requires_grad):
            raise call.refuse("writes to a view, or to a leaf that requires grad")
    for value in results:
        inside = value.node.graph is forward.graph or value.node.graph in forward.ended
        if not inside and not _is_in(value, call.given):
            raise call.refuse("returns a tensor that it neither gets nor computes")
    if len(set(map(id, results))) < len(results):
        raise call.refuse("returns one tensor twice")
    differentiable_results = [value for value in results if _gets_gradient(call, value)]
    if not ctx.materialize and len(differentiable_results) > 1:
        raise call.refuse("has several results, and its backward is to tell which of them get gradients")
    if getattr(call.cls, "boxed_grads_call", False):
        raise call.refuse("gets its gradients in one list")


def _gets_gradient(call: _Call, value: TensorValue) -> bool:
    return is_differentiable(value.meta.spec.dtype) and not _is_in(value, call.ctx.non_differentiable)


def _trace_backward(tx: Context, call: _Call, forward: Body) -> tuple[Body, list[Node | None]]:
    """The backward's body, and its gradient for each of the forward's pinned arguments."""
    body = Body(forward, f"{call.cls.__name__}.backward", may_dispatch=True)
    body.derives, body.once = call.cls, _is_marked_once(call)
    arriving: list[Value] = []
    for value in call.outputs:
        arriving.append(_gradient(call, body, value) if isinstance(value, TensorValue) else NONE)
    function = _derivative(tx, call)
    call.ctx.in_backward = True
    known = [call.ctx, *call.given]
    run: Callable[[], Value] = lambda: function.call(tx, [call.ctx, *arriving], {})  # noqa: E731
    found = trace_body(tx, body, run, pure=True, passed=known)
    if call.ctx.unpacked:
        # A backward that does not use one of them is refused all the same if that was overwritten.
        plain = (torch.Tensor, torch.nn.Parameter)
        saved = [v.node for v in call.ctx.saved if isinstance(v, TensorValue) and v.meta.cls in plain]
        for node in saved:
            body.use(node)
            body.pinned.add(body.parent.use(node))
        body.lift_first(saved)
        is_plain = len(saved) == sum(isinstance(value, TensorValue) for value in call.ctx.saved)
        call.saved = len({body.parent.use(node) for node in saved}) if is_plain else None
    items = [tx.force(v) for v in found.items] if isinstance(found, TupleValue) else [found]
    if len(items) < len(call.given) or not all(map(is_none, items[len(call.given) :])):
        call.fails = (
            f"function {call.cls.__name__}Backward returned an incorrect number of gradients "
            f"(expected {len(call.given)}, got {len(items)})"
        )
        items = []
    return body, _gradients(tx, call, forward, body, items)


def gradient_parameter(body: Body, value: TensorValue) -> TensorValue:
    """The row-major gradient of a result, as a parameter of a backward's body."""
    spec = value.meta.spec
    arriving = TensorSpec(spec.sizes, contiguous_strides(spec.sizes), spec.dtype, spec.device)
    for size in spec.sizes:
        if not isinstance(size, int):
            body.parent.need(size)
    node = body.parameter(f"grad_{value.node.name}", arriving)
    return TensorValue(node, TensorMeta.of(arriving, False, True))


def _gradient(call: _Call, body: Body, value: TensorValue) -> Value:
    made = gradient_parameter(body, value)
    return NONE if not call.ctx.materialize and not _gets_gradient(call, value) else made


def _derivative(tx: Context, call: _Call) -> Value:
    cls = call.cls
    name = "vjp" if cls.vjp is not Function.vjp else "backward"
    if getattr(cls, name) is Function.backward:
        raise call.refuse("has no backward")
    return call.owner.get_attr(tx, name)


def _gradients(tx: Context, call: _Call, forward: Body, body: Body, items: list[Value]) -> list[Node | None]:
    """For each pinned argument the node of its gradient; one that was passed twice gets the sum."""
    found: dict[Node, Node | None] = {outer: None for outer in forward.lifted if outer in forward.pinned}
    for value, item, needed in zip(call.given, items, call.ctx.needs, strict=False):
        if is_none(item):
            continue
        if not isinstance(item, TensorValue) or not isinstance(value, TensorValue):
            raise call.refuse(f"has a backward that returns {item.describe()} for {value.describe()}")
        if not needed:
            continue
        history = history_of(tx, value)
        assert history is not None
        outer = forward.parent.use(history)
        node, known = body.use(item.node), found[outer]
        if known is not None:
            node = body.call(
                "call_function", operator.add, (known, node), {}, item.meta.spec, None, pure=True
            )
        found[outer] = node
    return list(found.values())


def open_differentiable(
    tx: Context,
    forward: Body,
    backward: Body,
    gradients: list[Node | None],
    results: list[TensorValue],
    metas: list[TensorMeta],
    options: dict[str, Any],
) -> list[Node]:
    """Put the call of a region with a backward of its own into the graph: a node for each of the forward's results."""
    outer = tx.output
    nodes = [forward.use(value.node) for value in results]
    specs = [with_grad(meta.spec, meta.requires_grad) for meta in metas]
    options = {"results": len(results), **options}
    node = call_region(outer, differentiable, [forward, backward], [], options, tuple(specs), tx.where())

    def close() -> None:
        backward.close(gradients)
        forward.close([*nodes, *backward.lifted])
        node.args = (*node.args[:2], *forward.lifted)

    outer.closing.append(close)
    forward.end()
    return [
        outer.call("call_function", operator.getitem, (node, i), {}, spec, None, pure=True)
        for i, spec in enumerate(specs)
    ]


def _open(tx: Context, call: _Call, forward: Body, backward: Body, gradients: list[Node | None]) -> Value:
    """Put the call into the graph, and make the values that it returns."""
    outer, results = tx.output, call.results
    metas = [_meta_of_result(call, value) for value in results]
    pinned = [node for node in forward.lifted if node in forward.pinned]
    options = {
        "dirty": tuple(pinned.index(outer.use(v.node)) for v in call.ctx.dirty if isinstance(v, TensorValue)),
        "non_differentiable": tuple(
            i for i, v in enumerate(results) if _is_in(v, call.ctx.non_differentiable)
        ),
        "materialize": call.ctx.materialize,
        "once": backward.once,
        "saved": call.saved,
        "name": call.cls.__name__,
    }
    if call.fails:
        options["fails"] = call.fails
    nodes = open_differentiable(tx, forward, backward, gradients, results, metas, options)
    made = iter([_result(node, v, m, call) for node, v, m in zip(nodes, results, metas, strict=True)])
    return _returned(call, [next(made) if isinstance(v, TensorValue) else v for v in call.outputs])


def _meta_of_result(call: _Call, value: TensorValue) -> TensorMeta:
    needs = _gets_gradient(call, value) and not call.again
    kind = value.meta.cls if _is_in(value, call.ctx.dirty) else torch.Tensor
    return TensorMeta.of(value.meta.spec, needs, not needs, kind)


def _result(node: Node, value: TensorValue, meta: TensorMeta, call: _Call) -> Value:
    if _is_in(value, call.ctx.dirty):
        value.meta = meta
        return value
    made = TensorValue(node, meta)
    if value.memory is not value or _is_in(value, call.given):
        made.show(value.memory)
        made.refuses_writes = True
        if len(call.outputs) == len(call.results) and not call.ctx.non_differentiable:
            place = next(i for i, one in enumerate(call.results) if one is value)
            node.meta[GIVEN_AS_VIEW] = (call.cls.__name__, place, len(call.results))
    return made


def _is_marked_once(call: _Call) -> bool:
    function = getattr(call.cls, "vjp" if call.cls.vjp is not Function.vjp else "backward")
    return getattr(function, "__code__", None) is once_differentiable(_is_in).__code__
