"""Building a graph by hand, with specs and signature: for tests, examples and small tools.

>>> builder = GraphBuilder("aten")
>>> x = builder.input(TensorSpec((4,), (1,), torch.float32, torch.device("cpu")))
>>> y = builder.call(torch.ops.aten.relu.default, x, spec=builder.spec(x))
>>> graph_module = builder.build(y)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, count
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from fx_interface.errors import UserLocation
from fx_interface.graph import call_block, materialize, set_spec, spec_of_node, symbol_nodes
from fx_interface.signature import (
    DIALECT_KEY,
    SHAPE_ENV_KEY,
    SIGNATURE_KEY,
    InputDecl,
    InputKind,
    OutputDecl,
    OutputKind,
    Signature,
)
from fx_interface.source import Source
from fx_interface.symbols import Expr, ShapeEnv
from fx_interface.tensor_spec import SymSpec, ValueSpec


class GraphBuilder:
    """Collects nodes of one graph. Symbolic sizes in arguments become nodes of their own."""

    def __init__(self, dialect: str, env: ShapeEnv | None = None) -> None:
        self.dialect = dialect
        self.env = ShapeEnv() if env is None else env
        self.graph = Graph()
        self._root = torch.nn.Module()
        self._inputs: list[InputDecl] = []

    def input(
        self,
        spec: ValueSpec,
        kind: InputKind = InputKind.USER,
        *,
        name: str = "x",
        source: Source | None = None,
    ) -> Node:
        """A placeholder; inputs come before all other nodes."""
        taken = {declared.name for declared in self._inputs}
        free = next(n for n in chain([name], (f"{name}_{i}" for i in count(1))) if n not in taken)
        node = set_spec(self.graph.placeholder(free), spec)
        self._inputs.append(InputDecl(node.name, kind, spec, source))
        return node

    def size(self, hint: int, *, name: str = "s", low: int = 2, high: int | None = None) -> Expr:
        """A new symbol and the placeholder that passes it."""
        made = self.env.create_symbol(hint, low=low, high=high)
        self.input(SymSpec(made), InputKind.SYMBOL, name=name)
        return made

    def call(
        self,
        target: Callable[..., Any],
        *args: Any,
        spec: ValueSpec,
        where: UserLocation | None = None,
        **kwargs: Any,
    ) -> Node:
        """A call of a function or operator."""
        return set_spec(self.graph.call_function(target, self._sizes(args), self._sizes(kwargs)), spec, where)

    def method(self, name: str, *args: Any, spec: ValueSpec, **kwargs: Any) -> Node:
        """A call of a tensor method; the first argument is the tensor."""
        return set_spec(self.graph.call_method(name, self._sizes(args), self._sizes(kwargs)), spec)

    def block(self, body: GraphModule, name: str = "block") -> Node:
        """A sub-graph, to be passed to ``call_block``."""
        if getattr(self._root, name, None) is not body:
            self._root.add_module(name, body)
        return self.graph.get_attr(name)

    def call_block(self, body: Node, *args: Any, spec: tuple[ValueSpec, ...]) -> Node:
        """A call of a sub-graph."""
        return self.call(call_block, body, *args, spec=spec)

    def spec(self, node: Node) -> ValueSpec:
        """A node's spec."""
        return spec_of_node(node)

    def build(self, *results: Any, outputs: Sequence[OutputDecl] | None = None) -> GraphModule:
        """The finished graph; all results are of kind USER unless ``outputs`` says otherwise."""
        self.graph.output(self._sizes(results))
        graph_module = GraphModule(self._root, self.graph)
        declared = tuple(OutputDecl(OutputKind.USER) for _ in results) if outputs is None else tuple(outputs)
        graph_module.meta[DIALECT_KEY] = self.dialect
        graph_module.meta[SIGNATURE_KEY] = Signature(tuple(self._inputs), declared)
        graph_module.meta[SHAPE_ENV_KEY] = self.env
        return graph_module

    def _sizes(self, value: Any) -> Any:
        match value:
            case Expr():
                return materialize(self.graph, value, symbol_nodes(self.graph))
            case tuple() | list():
                return type(value)([self._sizes(item) for item in value])
            case slice():
                return slice(*self._sizes((value.start, value.stop, value.step)))
            case dict():
                return {key: self._sizes(item) for key, item in value.items()}
        return value
