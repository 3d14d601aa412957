"""Nodes of a recorded call, made again for another module without asking what the operation does.

    recorded:  mul_3 = mul(x_2, layers_2_weight)     ->     mul_4 = mul(x_3, layers_3_weight)

The operation was found to make one node of its tensors and constants, and nothing else. What an operation does follows
from its arguments, which are known to be alike, and from what the trace knows, which is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch.fx import Node

from dynamo_capture.runtime.calls.opaque_calls import OpaqueCall
from dynamo_capture.semantics.tensors.content.followed import is_small
from dynamo_capture.semantics.tensors.results.catching import check_packing
from dynamo_capture.semantics.tensors.results.outcome import ArgumentRef, NewTensor
from dynamo_capture.session.controls import is_allowed_in_graph
from dynamo_capture.values import Const, SourcedConst, TensorValue, Value
from dynamo_capture.values.base import Context
from fx_interface.graph import LOCATION_KEY
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.tensor_spec import SPEC_KEY


@dataclass(slots=True)
class Stamp:
    """A node: what it calls, with which arguments, on which ``tensors``, and its ``result``, as it is ``described``."""

    node: Node
    tensors: tuple[TensorValue, ...]
    described: NewTensor | ArgumentRef
    saves: bool
    result: Value

    def is_of(self, given: Sequence[Value]) -> bool:
        """Whether it is made of these tensors and of constants that are the same for each module."""
        constant = all(type(one) is TensorValue or _is_the_same(one) for one in given)
        return constant and {id(one) for one in self.tensors} <= {id(one) for one in given}


def _is_the_same(one: Value) -> bool:
    """Whether a constant is the program's own, or one that a guard holds."""
    if type(one) is SourcedConst:
        return not one.is_unread and type(one.passed_on) in _NUMBERS
    return type(one) is Const and one.source is None


_NUMBERS = frozenset({bool, int, float, type(None)})


def stamp_of(
    tx: Context, call: Any, outcome: Any, tensors: Sequence[TensorValue], node: Node, result: Value
) -> Stamp | None:
    """The node of an operation; None where the operation has done more, or more is to be known of its tensors."""
    function = call.function
    if (
        type(outcome.result) not in (NewTensor, ArgumentRef)
        or not outcome.is_pure
        or outcome.updates
        or outcome.reads
    ):
        return None
    if isinstance(function, OpaqueCall) or is_allowed_in_graph(function) or not may_stamp(tx):
        return None
    if not node.meta.keys() <= {SPEC_KEY, LOCATION_KEY} or node.graph is not tx.output.graph:
        return None
    if any(is_small(one) for one in (*tensors, result) if isinstance(one, TensorValue)):
        return None  # numbers are followed
    if {one.node for one in tensors} != {*node.all_input_nodes} or node.op == "get_attr":
        return None
    return Stamp(node, tuple(tensors), outcome.result, outcome.may_save, result)


def may_stamp(tx: Context) -> bool:
    """Whether nothing that the trace has done makes a difference between tensors of which the same is known."""
    output, tensors = tx.output, tx.tensors
    has_changed = output.mutates or output.overwritten or output.unfollowed or output.assumes or output.checks
    is_special = tensors.chooses or tensors.has_nested or tensors.stand_ins or output.duals
    return not (has_changed or is_special or tensors.replaced or tensors.emptied or tensors.trained)


def stamped(tx: Context, stamp: Stamp, known: Mapping[int, Value]) -> Value:
    """The result of the operation on what ``known`` has for its tensors."""
    tensors: list[Any] = [known.get(id(one), one) for one in stamp.tensors]
    node = stamp.node
    places = {one.node: now.argument(tx) for one, now in zip(stamp.tensors, tensors, strict=True)}
    check_packing(tx, stamp.saves)
    made = tx.output.call(
        node.op,
        node.target,
        tuple([_with(arg, places) for arg in node.args]),
        {name: _with(arg, places) for name, arg in node.kwargs.items()},
        node.meta[SPEC_KEY],
        node.meta.get(LOCATION_KEY),
        pure=True,
        saves=stamp.saves,
    )
    return tx.tensors.result_of(made, stamp.described, tensors)


def _with(argument: Any, places: Mapping[Node, Any]) -> Any:
    if isinstance(argument, Node):
        return places[argument]
    if isinstance(argument, (tuple, list)):
        parts = [_with(part, places) for part in argument]
        return tuple(parts) if isinstance(argument, tuple) else parts
    if type(argument) is slice:
        return slice(*[_with(part, places) for part in (argument.start, argument.stop, argument.step)])
    return argument
