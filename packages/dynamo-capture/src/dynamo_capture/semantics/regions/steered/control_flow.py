"""``torch.cond`` and ``torch.while_loop``: what data decide about becomes the sub-graphs of one region.

Where Python knows the answer, the branch or the rounds are traced as any calls are. Else each function is traced once,
to a sub-graph that changes nothing outside: what it returns are new tensors, of the same form whatever the data say.
Only sizes may differ between branches: they are sizes from data then.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from dynamo_capture.foundation.break_kinds import CONTROL_FLOW
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.declared import handles_loaded
from dynamo_capture.semantics.regions.steered.sub_graph import Steered, open_region, require_grad
from dynamo_capture.semantics.tensors.content import conditions
from dynamo_capture.semantics.tensors.content.data_numbers import note_births
from dynamo_capture.values import Const, TensorValue, TupleValue, Value, are_tensors, one_tensor
from dynamo_capture.values.base import Context
from dynamo_capture.values.numbers.condition import DataCondition
from dynamo_capture.values.structures import form_of, items_of, leaves_of, mapped_leaves
from fx_interface.regions import conditional, loop
from fx_interface.symbols import IntLike
from fx_interface.tensor_spec import TensorSpec, contiguous_strides

MOST_ROUNDS = 1000
"""A loop whose condition Python knows is traced round by round; one of more rounds breaks the graph."""


@handles_loaded("torch._higher_order_ops.cond", "cond_op")
@handles_loaded("torch._higher_order_ops.cond", "cond")
def cond(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    condition, on_true, on_false, *rest = args
    operands = rest[0].unpack(tx) if rest else []
    asked = _asked(tx, condition)
    if not isinstance(asked, TensorValue):
        return (on_true if asked else on_false).call(tx, operands, {})
    bodies, found = [], []
    for name, function in (("True", on_true), ("False", on_false)):
        body = Steered(tx.output, f"the branch of torch.cond for {name} ({function.describe()})")
        found.append(body.trace(tx, function, operands))
        bodies.append(body)
    before = frozenset(tx.env.symbols)
    forms = _common_forms(tx, found)
    varying = frozenset(tx.env.symbols) - before
    for body, result in zip(bodies, found, strict=True):
        body.close([body.use(leaf.node) for leaf in leaves_of(tx, result)])
    used = list(dict.fromkeys(node for body in bodies for node in body.lifted))
    options = {
        name: tuple(used.index(node) for node in body.lifted)
        for name, body in zip(("true_args", "false_args"), bodies, strict=True)
    }
    args_of_call = [tx.output.use(asked.node), *used]
    trained = require_grad(tx, used)
    result = open_region(tx, conditional, bodies, args_of_call, options, found[0], trained, forms)
    note_births(tx, varying, TupleValue(list(leaves_of(tx, result))))
    return result


def _asked(tx: Context, condition: Value) -> TensorValue | bool:
    """The condition as a tensor in the graph, or the answer where that is known."""
    condition = tx.force(condition)
    if isinstance(condition, DataCondition):
        return conditions.as_tensor(tx, condition)
    if not isinstance(condition, TensorValue):
        return tx.truth(condition)
    if condition.content is not None:
        return tx.truth(condition)
    spec = condition.meta.spec
    if spec.numel != 1:
        raise GraphBreak(CONTROL_FLOW, f"the condition is {spec}, not one element")
    if spec.dtype is torch.bool:
        return condition
    asked = one_tensor(condition.call_method(tx, "to", [Const(torch.bool)], {}))
    return asked


def _common_forms(tx: Context, found: list[Value]) -> list[TensorSpec]:
    """The forms of what the branches return: the same structure of tensors, whose sizes may differ."""
    if form_of(tx, found[0]) != form_of(tx, found[1]):
        raise GraphBreak(CONTROL_FLOW, "the branches of torch.cond return different structures")
    leaves = [[leaf.meta.spec for leaf in leaves_of(tx, result)] for result in found]
    return [_common_form(tx, one, other) for one, other in zip(*leaves, strict=True)]


def _common_form(tx: Context, one: TensorSpec, other: TensorSpec) -> TensorSpec:
    """A form that both have: sizes that differ are sizes that data tell."""
    if one == other:
        return one
    alike = (one.dtype, one.device, len(one.sizes)) == (other.dtype, other.device, len(other.sizes))
    if not alike or not all(spec.strides == contiguous_strides(spec.sizes) for spec in (one, other)):
        raise GraphBreak(CONTROL_FLOW, f"the branches of torch.cond return {one} and {other}")
    sizes = tuple(_common_size(tx, *pair) for pair in zip(one.sizes, other.sizes, strict=True))
    return replace(one, sizes=sizes, strides=contiguous_strides(sizes))


def _common_size(tx: Context, one: IntLike, other: IntLike) -> IntLike:
    if one == other:
        return one
    low, high = (
        (min(one, other), max(one, other)) if isinstance(one, int) and isinstance(other, int) else (0, None)
    )
    made: IntLike = tx.env.create_symbol(None, low=low, high=high)
    return made


@handles_loaded("torch._higher_order_ops.while_loop", "while_loop")
def while_loop(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    condition, body, initial = args
    carried: Value = TupleValue(initial.unpack(tx))
    if are_tensors(items_of(tx, carried)):
        found = _loop(tx, condition, body, carried)
        if found is not None:
            return found
    rounds = 0
    while _holds(tx, condition.call(tx, carried.unpack(tx), {})):
        carried = tx.force(body.call(tx, carried.unpack(tx), {}))
        rounds += 1
        if rounds > MOST_ROUNDS:
            raise GraphBreak(
                CONTROL_FLOW, f"torch.while_loop takes more than {MOST_ROUNDS} rounds that Python counts"
            )
    if rounds:
        return carried
    return mapped_leaves(tx, carried, lambda leaf: leaf.call_method(tx, "clone", [], {}))


def _holds(tx: Context, answer: Value) -> bool:
    asked = _asked(tx, answer)
    if isinstance(asked, TensorValue):
        raise GraphBreak(
            CONTROL_FLOW, "a number is carried through rounds of torch.while_loop that data count"
        )
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
            raise GraphBreak(
                CONTROL_FLOW, "the body of torch.while_loop returns something else than it is given"
            )
        grown = [one or leaf.meta.requires_grad for one, leaf in zip(trained, after, strict=True)]
        if grown == trained:
            break
        trained = grown
    if asked.meta.spec.sizes or asked.meta.spec.dtype is not torch.bool:
        raise GraphBreak(CONTROL_FLOW, "the condition of torch.while_loop is not one bool")
    asks.close([asks.use(asked.node)])
    body.close([body.use(leaf.node) for leaf in after])
    used = list(dict.fromkeys(node for part in (asks, body) for node in part.lifted))
    options = {
        "carried": len(first),
        "condition_args": tuple(used.index(node) for node in asks.lifted),
        "body_args": tuple(used.index(node) for node in body.lifted),
    }
    given = [tx.output.use(leaf.node) for leaf in first]
    requires_grad = require_grad(tx, used) or (torch.is_grad_enabled() and any(trained))
    return open_region(tx, loop, [asks, body], [*given, *used], options, found, requires_grad)


def _round(
    tx: Context, function: Value, carried: Value, first: list[TensorValue], trained: list[bool], what: str
) -> tuple[Steered, Value]:
    """One round of a function of what is carried."""
    body = Steered(tx.output, f"{what} ({function.describe()})")
    inside = iter([body.argument(leaf.meta.spec, flag) for leaf, flag in zip(first, trained, strict=True)])
    args = mapped_leaves(tx, carried, lambda _: next(inside)).unpack(tx)
    return body, body.trace(tx, function, args)
