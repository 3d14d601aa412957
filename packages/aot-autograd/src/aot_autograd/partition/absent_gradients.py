"""A backward graph for calls in which no gradient arrives at some results.

A model returns a loss and what it was computed from, and the loss alone is differentiated. To a graph that takes a
gradient of each result, zeros must be given for the others: as large as these, written, read and added in every step.
Autograd itself computes nothing of a gradient that does not arrive, and neither does the graph that is made here:

    total = add(view(tangent_1), g);  return mm(total, w)      ->      return mm(g, w)

What is linear in a gradient that is absent is absent; where such a value meets something that has no rule here, it is
zeros, which the code generator needs no memory for.
"""

from __future__ import annotations

import operator
from collections.abc import Collection
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Graph, GraphModule, Node
from torch.fx._lazy_graph_module import _make_graph_module, _use_lazy_graph_module

from aot_autograd.plan import JointPlan
from fx_interface.graph import set_spec, spec_of_node
from fx_interface.graph_tools.dead_code import remove_dead_code
from fx_interface.signature import SIGNATURE_KEY, InputDecl, Signature, signature_of
from fx_interface.tensor_spec import SPEC_KEY, TensorSpec, contiguous_strides

aten = torch.ops.aten

_OF_FIRST: frozenset[OpOverload] = frozenset(
    (
        aten._log_softmax_backward_data.default,
        aten._softmax_backward_data.default,
        aten._to_copy.default,
        aten._unsafe_view.default,
        aten.clone.default,
        aten.detach.default,
        aten.div.Scalar,
        aten.div.Tensor,
        aten.embedding_dense_backward.default,
        aten.expand.default,
        aten.gelu_backward.default,
        aten.native_dropout_backward.default,
        aten.native_group_norm_backward.default,
        aten.native_layer_norm_backward.default,
        aten.neg.default,
        aten.nll_loss_backward.default,
        aten.permute.default,
        aten.select.int,
        aten.select_backward.default,
        aten.sigmoid_backward.default,
        aten.silu_backward.default,
        aten.slice.Tensor,
        aten.slice_backward.default,
        aten.squeeze.default,
        aten.squeeze.dim,
        aten.squeeze.dims,
        aten.sum.default,
        aten.sum.dim_IntList,
        aten.t.default,
        aten.tanh_backward.default,
        aten.threshold_backward.default,
        aten.transpose.int,
        aten.unsqueeze.default,
        aten.view.default,
    )
)
"""Operators that are linear in their first argument: what they make of an absent gradient is absent."""
_OF_EITHER: frozenset[OpOverload] = frozenset(
    (aten.mul.Tensor, aten.mul.Scalar, aten.mm.default, aten.bmm.default)
)
"""Operators that are linear in each of two arguments."""


def absent_tangents(plan: JointPlan) -> tuple[int, ...]:
    """The tangents, by number, that most likely never arrive: those of results beside the one that is a single number,
    if there is one and it has a gradient. A gradient of an input that the program has written to may arrive by another
    way."""
    backward = plan.backward
    if backward is None or len(backward.tangents) < 2:
        return ()
    written = {mutated.graph_index for mutated in plan.mutated}
    numbers = [n for n, tangent in enumerate(backward.tangents) if tangent.spec.sizes == ()]
    others = [n for n, tangent in enumerate(backward.tangents) if tangent.spec.sizes != ()]
    indices = [backward.tangents[n].graph_index for n in others]
    if len(numbers) != 1 or any(index in written or index >= plan.returned for index in indices):
        return ()
    return tuple(others)


def without_tangents(backward: GraphModule, absent: Collection[int]) -> GraphModule | None:
    """The graph with nothing for the inputs ``absent``, by number: its inputs stay where they are, those are given
    None, and gradients that would be zeros are None. None where that needs zeros of a size that varies."""
    made = _Copying(backward, absent).run()
    if made is not None:
        remove_dead_code(made)
    return made


class _NeedsSizesError(Exception):
    """Zeros would have a size that varies."""


class _Copying:
    """One pass over a graph. ``absent``: the nodes of the old graph that are."""

    def __init__(self, module: GraphModule, absent: Collection[int]) -> None:
        self._module, self._numbers = module, frozenset(absent)
        self._graph = Graph()
        self._known: dict[Node, Node] = {}
        self._absent: set[Node] = set()

    def run(self) -> GraphModule | None:
        inputs = 0
        try:
            for node in self._module.graph.nodes:
                if node.op == "placeholder":
                    self._input(node, inputs in self._numbers)
                    inputs += 1
                elif node.op == "output":
                    outputs = tuple(None if out in self._absent else self._new(out) for out in node.args[0])
                    self._graph.output(outputs)
                elif self._is_absent(node):
                    self._absent.add(node)
                else:
                    self._keep(node)
        except _NeedsSizesError:
            return None
        with _use_lazy_graph_module(True):
            made: GraphModule = _make_graph_module(self._module, self._graph)
        made.meta.update(self._module.meta)
        signature = signature_of(self._module)
        if signature is not None:
            made.meta[SIGNATURE_KEY] = self._signature(signature)
        return made

    def _signature(self, signature: Signature) -> Signature:
        inputs = tuple(
            InputDecl(given.name, given.kind, None, given.source) if n in self._numbers else given
            for n, given in enumerate(signature.inputs)
        )
        return Signature(inputs, signature.outputs)

    def _input(self, node: Node, is_absent: bool) -> None:
        made = self._known[node] = self._graph.node_copy(node)
        if is_absent:
            self._absent.add(node)
            made.meta[SPEC_KEY] = None

    def _is_absent(self, node: Node) -> bool:
        args, target = node.args, node.target
        if target in _OF_FIRST:
            return args[0] in self._absent
        if target in _OF_EITHER:
            return args[0] in self._absent or args[1] in self._absent
        if target is aten.add.Tensor:
            return args[0] in self._absent and args[1] in self._absent
        return target is operator.getitem and args[0] in self._absent

    def _keep(self, node: Node) -> None:
        present = [arg for arg in node.args if arg not in self._absent]
        adds = node.target is aten.add.Tensor and node.kwargs.get("alpha", 1) == 1 and len(present) == 1
        if adds and isinstance(present[0], Node) and spec_of_node(present[0]) == spec_of_node(node):
            self._known[node] = self._known[present[0]]
        else:
            self._known[node] = self._graph.node_copy(node, self._new)

    def _new(self, node: Any) -> Any:
        """A node of the new graph; zeros for one that is absent."""
        if not isinstance(node, Node) or node not in self._absent:
            return self._known[node] if isinstance(node, Node) else node
        spec = spec_of_node(node)
        if not isinstance(spec, TensorSpec) or not all(isinstance(size, int) for size in spec.sizes):
            raise _NeedsSizesError
        sizes: Any = list(spec.sizes)
        options: dict[str, Any] = {"dtype": spec.dtype, "device": spec.device}
        made = self._graph.call_function(aten.full.default, (sizes, 0), options)
        set_spec(made, TensorSpec(spec.sizes, contiguous_strides(spec.sizes), spec.dtype, spec.device))
        if made.meta[SPEC_KEY] != spec:
            raise _NeedsSizesError  # laid out otherwise than zeros are made
        return made
