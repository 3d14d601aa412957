"""``torch.cond`` and ``torch.while_loop``: what data decide about becomes the sub-graphs of one region.

Where Python knows the answer, the branch or the rounds are traced as any calls are. Else each function is traced once,
to a sub-graph that changes nothing outside: what it returns are new tensors, of the same form whatever the data say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.graph.graph_builder import WrittenTensor, is_differentiable, with_grad
from dynamo_capture.graph.region_body import Body
from dynamo_capture.semantics.declared import handles_loaded
from dynamo_capture.semantics.random_numbers.drawing import outside_only
from dynamo_capture.semantics.regions.tracing import call_region, trace_body
from dynamo_capture.semantics.tensors.results.outcome import NewTensor, ResultSequence
from dynamo_capture.values import Const, SymValue, TensorMeta, TensorValue, TupleValue, Value
from dynamo_capture.values.numbers.condition import DataCondition
from dynamo_capture.values.structures import form_of, items_of, leaves_of, mapped_leaves
from fx_interface.graph import EXPECTED_KEY
from fx_interface.regions import conditional, loop
from fx_interface.symbols import indicator
from fx_interface.tensor_spec import SPEC_KEY, TensorSpec

if TYPE_CHECKING:
    from torch.fx import Node

    from dynamo_capture.values.base import Context

MOST_ROUNDS = 1000
"""A loop whose condition Python knows is traced round by round; one of more rounds breaks the graph."""


class _Steered(Body):
    """The sub-graph of a function that perhaps does not run, or many times."""

    def argument(self, like: TensorValue, requires_grad: bool) -> TensorValue:
        """A parameter that stands for ``like``."""
        spec = like.meta.spec
        bare = TensorSpec(spec.sizes, spec.strides, spec.dtype, spec.device)
        node = self.parameter("carried", with_grad(bare, requires_grad))
        return TensorValue(node, TensorMeta.of(bare, requires_grad, not requires_grad))

    def trace(self, tx: Context, function: Value, args: list[Value]) -> Value:
        """What ``function`` returns inside, in new tensors. A graph break for what it may not do."""

        def call() -> Value:
            return self._in_new_tensors(tx, tx.force(function.call(tx, args, {})))

        try:
            run = lambda: trace_body(tx, self, call, pure=True, passed=[function, *args])  # noqa: E731
            result = outside_only(tx, run, self.what)
        except UserRaise as raised:
            what = raised.value.describe()
            raise GraphBreak("CAP248", f"{self.what} raises {what}") from None
        if self.leaves or any(place in self.parameters for place in self._written):
            raise GraphBreak("CAP242", f"{self.what} writes to a tensor of its surroundings")
        if any(_checks(node) for node in self.graph.nodes):
            raise GraphBreak("CAP248", f"{self.what} makes sure of a number from data, for itself alone")
        return result

    def __init__(self, parent: Any, what: str) -> None:
        super().__init__(parent, what)
        self._written: list[Node] = []

    def write(self, written: Sequence[WrittenTensor], lasting: Sequence[WrittenTensor] = ()) -> None:
        super().write(written, lasting)
        self._written += [tensor.memory.node for tensor in written]

    def _in_new_tensors(self, tx: Context, result: Value) -> Value:
        """The same structure, with copies of tensors whose memory something else shows too."""
        shown: list[TensorValue] = []

        def own(leaf: TensorValue) -> Value:
            made_here = leaf.memory.node.graph is self.graph and leaf.memory.node.op != "placeholder"
            if not made_here or any(leaf.memory is other for other in shown):
                copy = leaf.call_method(tx, "clone", [], {})
                assert isinstance(copy, TensorValue)
                leaf = copy
            shown.append(leaf.memory)
            return leaf

        return mapped_leaves(tx, result, own)


def _checks(node: Node) -> bool:
    return node.target is torch.ops.aten._assert_scalar.default or EXPECTED_KEY in node.meta


@handles_loaded("torch._higher_order_ops.cond", "cond")
def cond(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    condition, on_true, on_false, *rest = args
    operands = rest[0].unpack(tx) if rest else []
    asked = _asked(tx, condition)
    if not isinstance(asked, TensorValue):
        return (on_true if asked else on_false).call(tx, operands, {})
    bodies, found = [], []
    for name, function in (("True", on_true), ("False", on_false)):
        body = _Steered(tx.output, f"the branch of torch.cond for {name} ({function.describe()})")
        found.append(body.trace(tx, function, operands))
        bodies.append(body)
    _check_forms(tx, found)
    for body, result in zip(bodies, found, strict=True):
        body.close([body.use(leaf.node) for leaf in leaves_of(tx, result)])
    used = list(dict.fromkeys(node for body in bodies for node in body.lifted))
    options = {
        name: tuple(used.index(node) for node in body.lifted)
        for name, body in zip(("true_args", "false_args"), bodies, strict=True)
    }
    args_of_call = [tx.output.use(asked.node), *used]
    return _open(tx, conditional, bodies, args_of_call, options, found[0], _require_grad(tx, used))


def _asked(tx: Context, condition: Value) -> TensorValue | bool:
    """The condition as a tensor in the graph, or the answer where that is known."""
    condition = tx.force(condition)
    if isinstance(condition, DataCondition):
        number = indicator(condition.relation)
        made = (
            tx.tensors.call_function(
                torch.full, [TupleValue([]), SymValue(number)], {"dtype": Const(torch.bool)}
            )
            if not isinstance(number, int)
            else Const(bool(number))
        )
        return made if isinstance(made, TensorValue) else tx.truth(made)
    if not isinstance(condition, TensorValue):
        return tx.truth(condition)
    if condition.content is not None:
        return tx.truth(condition)
    spec = condition.meta.spec
    if spec.dtype is not torch.bool or spec.numel != 1:
        raise GraphBreak("CAP248", f"the condition is {spec}, not one bool")
    return condition


def _check_forms(tx: Context, found: list[Value]) -> None:
    """The branches must return the same structure of the same tensors."""
    if form_of(tx, found[0]) != form_of(tx, found[1]):
        raise GraphBreak("CAP248", "the branches of torch.cond return different structures")
    for one, other in zip(*(leaves_of(tx, result) for result in found), strict=True):
        if one.meta.spec != other.meta.spec:
            raise GraphBreak(
                "CAP248", f"the branches of torch.cond return {one.meta.spec} and {other.meta.spec}"
            )


@handles_loaded("torch._higher_order_ops.while_loop", "while_loop")
def while_loop(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    condition, body, initial = args
    carried: Value = TupleValue(initial.unpack(tx))
    if all(isinstance(item, TensorValue) for item in items_of(tx, carried)):
        found = _loop(tx, condition, body, carried)
        if found is not None:
            return found
    rounds = 0
    while _holds(tx, condition.call(tx, carried.unpack(tx), {})):
        carried = tx.force(body.call(tx, carried.unpack(tx), {}))
        rounds += 1
        if rounds > MOST_ROUNDS:
            raise GraphBreak(
                "CAP248", f"torch.while_loop takes more than {MOST_ROUNDS} rounds that Python counts"
            )
    if rounds:
        return carried
    return mapped_leaves(tx, carried, lambda leaf: leaf.call_method(tx, "clone", [], {}))


def _holds(tx: Context, answer: Value) -> bool:
    asked = _asked(tx, answer)
    if isinstance(asked, TensorValue):
        raise GraphBreak("CAP248", "a number is carried through rounds of torch.while_loop that data count")
    return asked


def _loop(tx: Context, condition: Value, function: Value, carried: Value) -> Value | None:
    """The loop as a region; None where Python knows whether the condition holds."""
    first = leaves_of(tx, carried, only=True)
    trained = [leaf.meta.requires_grad for leaf in first]
    while True:
        asks, asked = _round(tx, condition, carried, first, trained, "the condition of torch.while_loop")
        if not isinstance(asked, TensorValue):
            return None
        body, found = _round(tx, function, carried, first, trained, "the body of torch.while_loop")
        after = leaves_of(tx, found)
        if form_of(tx, found) != form_of(tx, carried) or any(
            one.meta.spec != other.meta.spec for one, other in zip(first, after, strict=True)
        ):
            raise GraphBreak("CAP248", "the body of torch.while_loop returns something else than it is given")
        grown = [one or leaf.meta.requires_grad for one, leaf in zip(trained, after, strict=True)]
        if grown == trained:
            break
        trained = grown
    if asked.meta.spec.sizes or asked.meta.spec.dtype is not torch.bool:
        raise GraphBreak("CAP248", "the condition of torch.while_loop is not one bool")
    asks.close([asks.use(asked.node)])
    body.close([body.use(leaf.node) for leaf in after])
    used = list(dict.fromkeys(node for part in (asks, body) for node in part.lifted))
    options = {
        "carried": len(first),
        "condition_args": tuple(used.index(node) for node in asks.lifted),
        "body_args": tuple(used.index(node) for node in body.lifted),
    }
    given = [tx.output.use(leaf.node) for leaf in first]
    requires_grad = _require_grad(tx, used) or (torch.is_grad_enabled() and any(trained))
    return _open(tx, loop, [asks, body], [*given, *used], options, found, requires_grad)


def _round(
    tx: Context, function: Value, carried: Value, first: list[TensorValue], trained: list[bool], what: str
) -> tuple[_Steered, Value]:
    """One round of a function of what is carried."""
    body = _Steered(tx.output, f"{what} ({function.describe()})")
    inside = iter([body.argument(leaf, flag) for leaf, flag in zip(first, trained, strict=True)])
    args = mapped_leaves(tx, carried, lambda _: next(inside)).unpack(tx)
    return body, body.trace(tx, function, args)


def _require_grad(tx: Context, used: Sequence[Node]) -> bool:
    """Whether autograd follows what is computed of these nodes."""
    if not torch.is_grad_enabled():
        return False
    specs = [node.meta.get(SPEC_KEY) for node in used]
    given = any(isinstance(spec, TensorSpec) and spec.requires_grad for spec in specs)
    return given or not tx.tensors.trained.isdisjoint(used)


def _open(
    tx: Context,
    target: Callable[..., Any],
    bodies: Sequence[Body],
    args: list[Any],
    options: dict[str, Any],
    result: Value,
    requires_grad: bool,
) -> Value:
    """Put the call into the graph; its results are new tensors in the structure ``result``."""
    metas = [_meta(leaf, requires_grad) for leaf in leaves_of(tx, result)]
    spec = tuple(with_grad(meta.spec, meta.requires_grad) for meta in metas)
    node = call_region(tx.output, target, list(bodies), args, options, spec, tx.where())
    for body in bodies:
        body.end()
    described = ResultSequence(tuple, [NewTensor(meta, None) for meta in metas])
    made = iter(tx.tensors.result_of(node, described, []).unpack(tx))
    return mapped_leaves(tx, result, lambda _: next(made))


def _meta(leaf: TensorValue, requires_grad: bool) -> TensorMeta:
    spec = leaf.meta.spec
    trained = requires_grad and is_differentiable(spec.dtype)
    return TensorMeta.of(spec, trained, not trained)
