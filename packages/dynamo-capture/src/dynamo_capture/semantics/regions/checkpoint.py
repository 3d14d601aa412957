"""``torch.utils.checkpoint.checkpoint``: the function's part of the graph is a region that the backward runs again.

Eager runs the Python function a second time in the backward; a graph runs the recorded operations again. Both are the
same exactly if the function changes nothing but its own objects, so anything else breaks the graph (CAP242).
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any

import torch
from torch.fx import Node
from torch.utils.checkpoint import checkpoint, noop_context_fn

from dynamo_capture.foundation.break_kinds import CHECKPOINT
from dynamo_capture.foundation.class_members import (
    CLASS_OF_OBJECTS,
    is_subtype,
    member,
    runs_program,
    runs_program_when_known,
)
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.graph.graph_builder import GraphOutput
from dynamo_capture.graph.region_body import Body
from dynamo_capture.semantics.messages import warn
from dynamo_capture.semantics.modes.modes import GradMode
from dynamo_capture.semantics.random_numbers.drawing import outside_only
from dynamo_capture.semantics.regions.policies import policy_of
from dynamo_capture.semantics.regions.tracing import call_region, trace_body
from dynamo_capture.semantics.registry import handles
from dynamo_capture.semantics.tensors.attributes import is_own
from dynamo_capture.values import NONE, Const, Lazy, TensorValue, TupleValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.structures import kinds_of
from fx_interface.regions import checkpointed
from fx_interface.tensor_spec import SPEC_KEY, ValueSpec, is_differentiable

_OPTIONS = ("use_reentrant", "context_fn", "determinism_check", "debug", "early_stop", "preserve_rng_state")
_UNSTATED = (
    "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, calling"
    " checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, but if you need to"
    " preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for more details on the"
    " differences between the two variants."
)


@handles(checkpoint)
def call_checkpoint(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    function, *given = args
    options = {name: kwargs.pop(name) for name in _OPTIONS if name in kwargs}
    reentrant = _reentrant(tx, options.get("use_reentrant", NONE))
    _refuse_options(tx, options, reentrant, kwargs)
    _check_asked(tx, [*given, *kwargs.values()])
    policy = _policy(tx, options)
    if not torch.is_grad_enabled():
        return function.call(tx, given, kwargs)
    if reentrant and not any(isinstance(v, TensorValue) and v.meta.requires_grad for v in given):
        return _without_gradients(tx, function, given)
    name = function.describe()
    body = Body(tx.output, f"the checkpointed part ({name})", may_dispatch=True)
    passed = [function, *given, *kwargs.values()]

    def run() -> Value:
        return trace_body(tx, body, lambda: function.call(tx, given, kwargs), pure=True, passed=passed)

    result = outside_only(tx, run, body.what)
    if body.draws and not tx.truth(options.get("preserve_rng_state", Const(True))):
        raise GraphBreak(
            CHECKPOINT, "a checkpoint that draws random numbers does not preserve the random state"
        )
    if reentrant:
        _check_results(tx, result, given, True)
    held = [tx.output.use(value.node) for value in given if isinstance(value, TensorValue)]
    _open(tx, body, held, {} if policy is None else {"policy": policy})
    return result


_ASKED_OF_TUPLES = ("__iter__", "__len__", "__length_hint__")


def _check_asked(tx: Context, given: list[Value]) -> None:
    """Eager's checkpoint takes its arguments apart, tuples with named fields by ``list``, and asks all that it finds
    whether it is a tensor. Code of the program that answers is to run."""
    for value in _with_containers(tx, given):
        cls = value.python_type()
        if isinstance(value, TensorValue):
            _check_tensor(tx, value)
        if runs_program_when_known(type(cls)) or (
            not isinstance(value, TensorValue)
            and (runs_program(cls) or member(cls, "__class__") is not CLASS_OF_OBJECTS)
        ):
            raise GraphBreak(
                CHECKPOINT, "a checkpoint asks the class of an argument, which has code for that"
            )
        if is_subtype(cls, tuple) and any(
            type(member(cls, name)) is FunctionType for name in _ASKED_OF_TUPLES
        ):
            raise GraphBreak(CHECKPOINT, "a checkpoint lists the items of a tuple, which has code for that")


def _check_tensor(tx: Context, value: TensorValue) -> None:
    """It asks a tensor for its device, in the reentrant form whether it requires grad."""
    cls = value.meta.cls
    asked = not tx.tensors.disabled and tx.tensors.overriding([value])
    if asked or any(is_own(tx, cls, name) for name in ("device", "requires_grad")):
        raise GraphBreak(CHECKPOINT, "a checkpoint asks a tensor for its device, whose class answers that")


def _with_containers(tx: Context, given: Iterable[Value]) -> Iterator[Value]:
    """What ``kinds_of`` finds, and the tuples in which it does."""
    given = [tx.force(value) if type(value) is Lazy else value for value in given]
    yield from kinds_of(tx, given)
    for value in given:
        if isinstance(value, TupleValue):
            yield value
            yield from (one for one in _with_containers(tx, value.kinds) if isinstance(one, TupleValue))


def _reentrant(tx: Context, stated: Value) -> bool:
    if tx.is_constant(stated) and tx.constant(stated) is None:
        warn(tx, [Const(_UNSTATED), NONE, Const(1)], {})
        return True
    return tx.truth(stated)


def _refuse_options(
    tx: Context, options: dict[str, Value], reentrant: bool, kwargs: dict[str, Value]
) -> None:
    if reentrant and _context(tx, options) is not None:
        raise GraphBreak(CHECKPOINT, "a reentrant checkpoint has a context_fn, which it does not take")
    if "debug" in options and tx.truth(options["debug"]):
        raise GraphBreak(CHECKPOINT, "a checkpoint is to be debugged")
    if reentrant and kwargs:
        raise GraphBreak(CHECKPOINT, "a reentrant checkpoint gets keyword arguments, which it does not take")


def _context(tx: Context, options: dict[str, Value]) -> Value | None:
    context = options.get("context_fn")
    is_none = context is None or (tx.is_constant(context) and tx.constant(context) is noop_context_fn)
    return None if is_none else context


def _policy(tx: Context, options: dict[str, Value]) -> str | None:
    """The name of the policy that says what is saved."""
    context = _context(tx, options)
    return None if context is None else policy_of(tx, context.call(tx, [], {}))


def _without_gradients(tx: Context, function: Value, given: list[Value]) -> Value:
    """The reentrant form asks its arguments whether gradients are wanted, not what else the function uses."""
    warn(
        tx, [Const("None of the inputs have requires_grad=True. Gradients will be None"), NONE, Const(1)], {}
    )
    result = GradMode(False, torch.no_grad).call(tx, [function], {}).call(tx, given, {})
    _check_results(tx, result, given, False)
    return result


def _check_results(tx: Context, result: Value, given: list[Value], wants_gradients: bool) -> None:
    """The reentrant form makes tensors differentiable that it returns itself, all of them or none, and no others."""
    results = result.items if isinstance(result, TupleValue) and result.cls is tuple else [result]
    for item in map(tx.force, results):
        if isinstance(item, TensorValue):
            if is_differentiable(item.meta.spec.dtype) and item.meta.requires_grad is not wants_gradients:
                other = "no" if wants_gradients else "a"
                raise GraphBreak(
                    CHECKPOINT, f"a reentrant checkpoint returns a tensor that needs {other} gradient"
                )
            if any(item is argument for argument in given):
                raise GraphBreak(CHECKPOINT, "a reentrant checkpoint returns one of its arguments")
        elif not tx.is_constant(item):
            raise GraphBreak(CHECKPOINT, f"a reentrant checkpoint returns {item.describe()}")


def _open(tx: Context, body: Body, given: list[Node], options: dict[str, Any]) -> None:
    """Put the call into the graph. What it returns is found out by what is used of it from now on; ``given``: tensors
    that are its arguments, of which eager's checkpoint notices that they were overwritten."""
    outer = tx.output
    for node in given:
        body.use(node)
    body.seen.update(given)
    body.lift_first(given)
    call = call_region(outer, checkpointed, [body], [], {}, (), tx.where())
    items: dict[Node, Node] = {}

    def export(node: Node) -> Node:
        inner = body.use(node)
        if inner not in items:
            spec = inner.meta[SPEC_KEY]
            call.meta[SPEC_KEY] = (*call.meta[SPEC_KEY], spec)
            items[inner] = _item(outer, call, len(body.results), spec)
            body.results.append(inner)
        return items[inner]

    def close() -> None:
        body.close(body.results)
        call.args = (call.args[0], *body.lifted)
        saved = tuple(index for index, node in enumerate(body.lifted) if node in given)
        call.kwargs = {**({"saved": saved} if saved else {}), **options}

    body.exporter = export
    outer.closing.append(close)
    body.end()


def _item(outer: GraphOutput, call: Node, index: int, spec: ValueSpec) -> Node:
    return outer.call("call_function", operator.getitem, (call, index), {}, spec, None, pure=True)
