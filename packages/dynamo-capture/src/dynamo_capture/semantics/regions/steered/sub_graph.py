"""A sub-graph of a function that data steer or repeat: it changes nothing outside and returns new tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Node

from dynamo_capture.foundation.break_kinds import CONTROL_FLOW, REGION_EFFECT
from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.graph.graph_builder import WrittenTensor
from dynamo_capture.graph.region_body import Body
from dynamo_capture.semantics.random_numbers.drawing import outside_only
from dynamo_capture.semantics.regions.tracing import call_region, trace_body
from dynamo_capture.semantics.tensors.results.outcome import NewTensor, ResultSequence
from dynamo_capture.values import TensorMeta, TensorValue, Value, one_tensor
from dynamo_capture.values.base import Context
from dynamo_capture.values.structures import leaves_of, mapped_leaves
from fx_interface.graph import EXPECTED_KEY
from fx_interface.tensor_spec import SPEC_KEY, TensorSpec, is_differentiable, with_grad


class Steered(Body):
    """The sub-graph of a function that perhaps does not run, or many times."""

    def argument(self, spec: TensorSpec, requires_grad: bool) -> TensorValue:
        """A parameter that stands for a tensor of this form."""
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
            raise GraphBreak(CONTROL_FLOW, f"{self.what} raises {what}") from None
        if self.leaves or any(place in self.parameters for place in self._written):
            raise GraphBreak(REGION_EFFECT, f"{self.what} writes to a tensor of its surroundings")
        if any(_checks(node) for node in self.graph.nodes):
            raise GraphBreak(CONTROL_FLOW, f"{self.what} makes sure of a number from data, for itself alone")
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
                copy = one_tensor(leaf.call_method(tx, "clone", [], {}))
                leaf = copy
            shown.append(leaf.memory)
            return leaf

        return mapped_leaves(tx, result, own)


def _checks(node: Node) -> bool:
    return node.target is torch.ops.aten._assert_scalar.default or EXPECTED_KEY in node.meta


def require_grad(tx: Context, used: Sequence[Node]) -> bool:
    """Whether autograd follows what is computed of these nodes."""
    if not torch.is_grad_enabled():
        return False
    specs = [node.meta.get(SPEC_KEY) for node in used]
    given = any(isinstance(spec, TensorSpec) and spec.requires_grad for spec in specs)
    return given or not tx.tensors.trained.isdisjoint(used)


def open_region(
    tx: Context,
    target: Callable[..., Any],
    bodies: Sequence[Body],
    args: list[Any],
    options: dict[str, Any],
    result: Value,
    requires_grad: bool,
    forms: Sequence[TensorSpec] | None = None,
) -> Value:
    """Put the call into the graph; its results are new tensors in the structure ``result``, perhaps of ``forms``."""
    if forms is None:
        forms = [leaf.meta.spec for leaf in leaves_of(tx, result)]
    metas = [_meta(form, requires_grad) for form in forms]
    spec = tuple(with_grad(meta.spec, meta.requires_grad) for meta in metas)
    node = call_region(tx.output, target, list(bodies), args, options, spec, tx.where())
    for body in bodies:
        body.end()
    described = ResultSequence(tuple, [NewTensor(meta, None) for meta in metas])
    made = iter(tx.tensors.result_of(node, described, []).unpack(tx))
    return mapped_leaves(tx, result, lambda _: next(made))


def _meta(spec: TensorSpec, requires_grad: bool) -> TensorMeta:
    trained = requires_grad and is_differentiable(spec.dtype)
    return TensorMeta.of(spec, trained, not trained)
