"""Writing a trace out as an FX graph: live calls in order, sizes made into nodes where they are used."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx._lazy_graph_module import _LazyGraphModule

from fx_interface.dialects.prims import PrimOp
from fx_interface.graph import size_max, size_min
from fx_interface.signature import DIALECT_KEY
from fx_interface.symbols import Apply, Expr, IntLike, Symbol
from fx_interface.tensor_spec import SPEC_KEY, SymSpec, TensorSpec
from fx_interface.torch_internals.graph_nodes import call_node
from primtorch_decomps.prims import Call, PrimTensor, Trace

_SIZE_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "min": size_min,
    "max": size_max,
}


class Emitter:
    """Turns one trace into a graph module. ``source`` gives names, metadata and sub-graphs."""

    def __init__(
        self,
        source: GraphModule,
        trace: Trace,
        inputs: Sequence[tuple[Node, Call]],
        blocks: Mapping[str, GraphModule],
    ) -> None:
        self.source = source
        self.trace = trace
        self.inputs = inputs
        self.blocks = blocks
        self.graph = Graph()
        self.nodes: dict[Call, Node] = {}
        self.sizes: dict[Expr, Node] = {}
        self.definitions: dict[Symbol, Call] = {}
        self._specs: dict[tuple[Any, ...], TensorSpec] = {}
        for expr, call in trace.size_calls.items():
            if expr.as_symbol is not None:
                self.definitions[expr.as_symbol] = call

    def graph_module(self, outputs: Any) -> GraphModule:
        """The graph whose results are ``outputs``."""
        live = self._live(outputs)
        for node, call in self.inputs:
            self._placeholder(node, call)
        for call in self.trace.calls:
            if call in live or self._has_effect(call):
                self._emit(call)
        self.graph.output(self._argument(outputs))
        made = _LazyGraphModule(dict(self.blocks) or torch.nn.Module(), self.graph)
        made.meta = {**self.source.meta, DIALECT_KEY: "prims"}
        return made

    def _has_effect(self, call: Call) -> bool:
        return call.key is None and not isinstance(call.spec, PrimTensor) and call.target != "get_attr"

    def _live(self, outputs: Any) -> set[Call]:
        """What the outputs and calls with effects are computed from. Calls come after those that they read."""
        live: set[Call] = set()
        self._mark(outputs, live)
        for call in reversed(self.trace.calls):
            if call in live or self._has_effect(call):
                live.add(call)
                self._mark(call.args, live)
                if call.kwargs:
                    self._mark(call.kwargs, live)
        return live

    def _mark(self, value: Any, live: set[Call]) -> None:
        """Add the calls that an argument is made of."""
        kind = type(value)
        if kind is tuple or kind is list:
            for item in value:
                made = type(item)
                if made is PrimTensor:
                    live.add(item.call)
                elif made is not int:
                    self._mark(item, live)
        elif kind is PrimTensor:
            live.add(value.call)
        elif kind is Call:
            live.add(value)
        elif kind is Expr:
            live.update([self.definitions[s] for s in value.symbols if s in self.definitions])
        elif kind is dict:
            for item in value.values():
                self._mark(item, live)

    def _placeholder(self, node: Node, call: Call) -> None:
        made = self.graph.create_node("placeholder", node.target, name=node.name)
        made.meta.update(node.meta)
        self.nodes[call] = made
        self._bind(call, made)

    def _bind(self, call: Call, node: Node) -> None:
        if isinstance(call.spec, SymSpec) and isinstance(call.spec.expr, Expr):
            self.sizes.setdefault(call.spec.expr, node)

    def _emit(self, call: Call) -> None:
        if call.target == "get_attr":
            node = self.graph.create_node("get_attr", call.args[0])
        else:
            node = self._call_node(call)
        spec = call.spec
        node.meta.update(call.meta)
        node.meta[SPEC_KEY] = self._spec(spec) if isinstance(spec, PrimTensor) else spec
        self.nodes[call] = node
        self._bind(call, node)

    def _spec(self, value: PrimTensor) -> TensorSpec:
        """The spec of a tensor, one object for all that are alike."""
        key = (value.sizes, value.strides, value.dtype, value.device)
        found = self._specs.get(key)
        if found is None:
            found = self._specs[key] = TensorSpec(*key)
        return found

    def _call_node(self, call: Call) -> Node:
        args = tuple([self._argument(a) for a in call.args])
        kwargs = {key: self._argument(value) for key, value in call.kwargs.items()} if call.kwargs else {}
        target = call.target
        name = target.name if type(target) is PrimOp else None
        return call_node(self.graph, "call_function", target, args, kwargs, name)

    def _argument(self, value: Any) -> Any:
        kind = type(value)
        if kind is PrimTensor:
            return self.nodes[value.call]
        if kind is Call:
            return self.nodes[value]
        if kind is Expr:
            return self._size(value)
        if kind is tuple:
            return tuple([self._argument(item) for item in value])
        if kind is list:
            return [self._argument(item) for item in value]
        return value

    def _size(self, value: IntLike) -> Any:
        """A node that computes a size from the graph's symbols; each expression once."""
        if isinstance(value, int):
            return value
        found = self.sizes.get(value)
        if found is None:
            found = self.sizes[value] = self._sum(value)
        return found

    def _sum(self, value: Expr) -> Node:
        """``value`` term by term; a sum of one term is its product."""
        total: Any = None
        running: IntLike = 0
        for monomial, coefficient in value.terms:
            if total is not None and not monomial and coefficient < 0:
                running = running + coefficient
                total = self._apply(operator.sub, total, -coefficient, running)
                continue
            term, term_value = self._product(monomial, coefficient)
            running = running + term_value
            total = term if total is None else self._apply(operator.add, total, term, running)
        assert isinstance(total, Node)
        return total

    def _product(self, monomial: Sequence[Symbol | Apply], coefficient: int) -> tuple[Any, IntLike]:
        node: Any = coefficient if coefficient != 1 or not monomial else None
        running: IntLike = coefficient
        for atom in monomial:
            factor, factor_value = self._atom(atom)
            running = running * factor_value
            node = factor if node is None else self._apply(operator.mul, factor, node, running)
        return node, running

    def _atom(self, atom: Symbol | Apply) -> tuple[Node, Expr]:
        value = Expr((((atom,), 1),))
        found = self.sizes.get(value)
        if found is None:
            if isinstance(atom, Symbol):
                found = self._read_symbol(atom)
            else:
                lhs, rhs = (self._size(arg) for arg in atom.args)
                found = self._apply(_SIZE_FUNCTIONS[atom.function], lhs, rhs, value)
            self.sizes[value] = found
        return found, value

    def _read_symbol(self, atom: Symbol) -> Node:
        for _, call in self.inputs:
            if isinstance(call.spec, TensorSpec):
                for axis, size in enumerate(call.spec.sizes):
                    if isinstance(size, Expr) and size.as_symbol is atom:
                        return self._apply(torch.ops.aten.sym_size.int, self.nodes[call], axis, size)
        raise ValueError(f"the graph uses the size {atom} but no input gives it")

    def _apply(self, function: Callable[..., Any], one: Any, other: Any, value: IntLike) -> Node:
        if isinstance(value, Expr) and value in self.sizes:
            return self.sizes[value]
        node = self.graph.call_function(function, (one, other))
        node.meta[SPEC_KEY] = SymSpec(value)
        if isinstance(value, Expr):
            self.sizes[value] = node
        return node
