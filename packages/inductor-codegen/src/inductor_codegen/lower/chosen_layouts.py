"""Layouts that the code generator has chosen for values of a graph, where these are not what the specs say."""

from __future__ import annotations

import operator
from dataclasses import field

from torch.fx import Node

from fx_interface.dialects.prims import PrimKind, PrimOp
from fx_interface.graph import spec_of_node
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.tensor_spec import TensorSpec
from inductor_codegen.lower.views import Sizes


@dataclass(slots=True)
class Layouts:
    """``results``: strides in memory of a node's result, by its position. ``arguments``: strides that a library call is
    to be given an argument in. ``moved``: the nodes that may lie elsewhere than their specs say, views included; every
    other library call is given them as the specs say. ``saved``: strides of results of the graph that another graph
    reads, by position. ``exact``: library calls compute eager's bits, and no kernel takes the place of one.
    """

    results: dict[tuple[Node, int], Sizes] = field(default_factory=dict)
    arguments: dict[tuple[Node, int], Sizes] = field(default_factory=dict)
    moved: set[Node] = field(default_factory=set)
    saved: dict[int, Sizes] = field(default_factory=dict)
    exact: bool = False

    def __bool__(self) -> bool:
        return bool(self.results)

    def move(self, node: Node, position: int, strides: Sizes) -> None:
        """The result of ``node`` at ``position`` is to have these strides."""
        self.results[node, position] = strides
        self.moved.add(node)

    def ask(self, node: Node, place: int, strides: Sizes) -> None:
        """Argument number ``place`` of the call ``node`` is to have these strides."""
        self.arguments[node, place] = strides

    def follow(self, node: Node) -> None:
        """A view or a part of what has moved has moved."""
        target = node.target
        sees = target is operator.getitem or (isinstance(target, PrimOp) and target.kind is PrimKind.VIEW)
        if sees and node.args[0] in self.moved:
            self.moved.add(node)

    def strides_of(self, node: Node) -> Sizes | None:
        """The strides that were chosen for a node, or for the result that it takes out of a call's; None if none."""
        if node.target is operator.getitem and isinstance(node.args[0], Node):
            position = node.args[1]
            assert isinstance(position, int)
            return self.results.get((node.args[0], position))
        if isinstance(spec_of_node(node), TensorSpec):
            return self.results.get((node, 0))
        return None

    def as_told(self, node: Node) -> Sizes | None:
        """The strides that a library call expects of an argument, where these might be others."""
        spec = spec_of_node(node)
        return spec.strides if node in self.moved and isinstance(spec, TensorSpec) else None


AS_SPECS_SAY = Layouts()
"""Nothing was chosen."""
