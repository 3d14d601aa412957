"""From recorded values to ``torch.fx`` graphs in the aten dialect: only live calls, sizes materialised as nodes."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Graph, GraphModule, Node
from torch.fx._lazy_graph_module import _make_graph_module, _use_lazy_graph_module

from aot_autograd.recording.late_waits import with_late_waits
from aot_autograd.recording.record import is_random, is_unknown
from aot_autograd.recording.values import Value
from fx_interface.dialect_rules.aten import is_factory
from fx_interface.errors import UnsupportedProgramError
from fx_interface.graph import materialize, set_spec
from fx_interface.operator_facts.data_errors import may_fail
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.signature import (
    DIALECT_KEY,
    SHAPE_ENV_KEY,
    SIGNATURE_KEY,
    InputDecl,
    InputKind,
    OutputDecl,
    Signature,
)
from fx_interface.source import Source
from fx_interface.symbols import Expr, ShapeEnv, Symbol, symbol
from fx_interface.tensor_spec import SymSpec, TensorSpec, ValueSpec
from fx_interface.torch_internals.graph_nodes import call_node


@dataclass(frozen=True, slots=True)
class GraphInput:
    """A placeholder to be: the value that it binds (None for a symbolic size), and its declaration."""

    value: Value | None
    name: str
    kind: InputKind
    spec: ValueSpec
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Births:
    """Where symbols come from data: the calls that give them, as a size of the result or as the number itself."""

    calls: Mapping[Symbol, Value]
    env: ShapeEnv

    def under(self, expr: Expr) -> list[Value]:
        """The calls that an expression's symbols come from."""
        simplified = self.env.simplify(expr)
        symbols = expr.symbols | (simplified.symbols if isinstance(simplified, Expr) else frozenset())
        return [self.calls[atom] for atom in sorted(symbols, key=str) if atom in self.calls]


def live_values(
    roots: Iterable[Any],
    bound: Mapping[int, Any],
    keep: Iterable[Value] = (),
    births: Births | None = None,
) -> list[Value]:
    """The values that ``roots`` need, in recorded order, down to the bound ones (by number), which are not included.

    With ``births`` also the calls that give the symbols that the values compute with.
    """
    found: dict[int, Value] = {}
    pending = [*roots, *keep]
    while pending:
        item = pending.pop()
        kind = type(item)
        if kind is Value:
            number = item.number
            if number not in found and number not in bound:
                found[number] = item
                if births is None:
                    pending.extend(item.operands)
                else:
                    pending.extend(item.args)
                    pending.extend(item.kwargs.values())
        elif kind is list or kind is tuple:
            pending.extend(item)
        elif births is not None and kind is Expr:
            pending.extend(births.under(item))
    return [found[number] for number in sorted(found)]


def in_order_of_use(live: Sequence[Value]) -> list[Value]:
    """``live`` in recorded order, but forward values in a backward (computed again) not before they are used.

    Computed at the start, they would all be in memory at once, which keeping them would have cost too.
    """
    wanted = {value.number for value in live}
    made: list[Value] = []
    done: set[int] = set()
    for last in [value for value in live if value.backward] + [value for value in live if not value.backward]:
        pending = [last]
        while pending:
            value = pending[-1]
            missing = [v for v in value.operands if v.number in wanted and v.number not in done]
            if missing and value.number not in done:
                pending += missing
                continue
            pending.pop()
            if value.number not in done:
                done.add(value.number)
                made.append(value)
    return made


def symbols_in(values: Iterable[Value], extra: Iterable[Any]) -> set[Symbol]:
    """Every symbol that occurs in the specs and arguments of ``values``, or in ``extra``."""
    found: set[Symbol] = set()
    pending: list[Any] = list(extra)
    for value in values:
        pending.append(value.spec)
        pending.append(value.args)
        pending.extend(value.kwargs.values())
    while pending:
        item = pending.pop()
        kind = type(item)
        if kind is Expr:
            found |= item.symbols
        elif kind is TensorSpec:
            if not item.is_static:
                pending.extend(item.sizes)
                pending.extend(item.strides)
        elif kind is SymSpec:
            pending.append(item.expr)
        elif kind is list or kind is tuple:
            pending.extend(item)
    return found


@cache
def _node_name(op: Any) -> str:
    """``aten.add.Tensor`` is ``add``, as is every overload."""
    return str(op._opname) if isinstance(op, OpOverload) else str(op.__name__)


class _Sizes(dict[Symbol, Node]):
    """The nodes of symbols. One that is a size of a part of a result, and of nothing that is used otherwise, is read
    when somebody asks for it."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.parts: dict[Symbol, tuple[Node, int, TensorSpec, int]] = {}

    def __missing__(self, atom: Symbol) -> Node:
        if atom not in self.parts:
            raise KeyError(atom)
        whole, index, spec, dim = self.parts[atom]
        part = set_spec(self.graph.call_function(operator.getitem, (whole, index)), spec)
        read = self.graph.call_function(torch.ops.aten.sym_size.int, (part, dim))
        made = self[atom] = set_spec(read, SymSpec(symbol(atom.name)))
        return made


class _Builder:
    """Makes nodes for values; ``nodes`` by value number, ``symbols`` by symbol."""

    def __init__(self, env: ShapeEnv, births: Births | None) -> None:
        self.graph = Graph()
        self.env = env
        self.births: Mapping[Symbol, Value] = {} if births is None else births.calls
        self.nodes: dict[int, Node] = {}
        self.symbols = _Sizes(self.graph)

    def place(self, given: GraphInput) -> Node:
        """A placeholder."""
        node = set_spec(self.graph.create_node("placeholder", given.name), given.spec)
        if given.value is not None:
            self.nodes[given.value.number] = node
        elif isinstance(given.spec, SymSpec) and isinstance(given.spec.expr, Expr):
            atom = given.spec.expr.as_symbol
            assert atom is not None, given
            self.symbols[atom] = node
        return node

    def add(self, value: Value) -> None:
        """The node of a recorded call."""
        kwargs = {name: self.argument(arg) for name, arg in value.kwargs.items()}
        if (
            value.op is torch.ops.aten._assert_scalar.default
        ):  # as stated, not as it is simplified by what it states
            args: tuple[Any, ...] = (materialize(self.graph, value.args[0], self.symbols), value.args[1])
        else:
            args = tuple([self.argument(arg) for arg in value.args])
        if isinstance(value.op, OpOverload) and is_factory(value.op):
            kwargs |= {"dtype": value.spec.dtype, "device": value.spec.device}
        node = call_node(self.graph, "call_function", value.op, args, kwargs, _node_name(value.op))
        self.nodes[value.number] = set_spec(node, value.spec, value.where)
        if self.births:
            self._bind_sizes(value.spec, node)

    def _bind_sizes(self, spec: ValueSpec, node: Node) -> None:
        """Where the symbols that come up with this value are read: whoever takes the graph apart needs to know."""
        if isinstance(spec, SymSpec):
            atom = spec.expr.as_symbol if isinstance(spec.expr, Expr) else None
            if atom is not None:
                self.symbols.setdefault(atom, node)
        if isinstance(spec, (tuple, list)):
            for index, part in enumerate(spec):
                if isinstance(part, TensorSpec):
                    self._note_part(node, index, part)
        if not isinstance(spec, TensorSpec) or spec.is_static:
            return
        for dim, size in enumerate(spec.sizes):
            atom = size.as_symbol if isinstance(size, Expr) else None
            if atom is not None and atom not in self.symbols and atom in self.births:
                read = self.graph.call_function(torch.ops.aten.sym_size.int, (node, dim))
                self.symbols[atom] = set_spec(read, SymSpec(size))

    def _note_part(self, node: Node, index: int, part: TensorSpec) -> None:
        for dim, size in enumerate(part.sizes):
            atom = size.as_symbol if isinstance(size, Expr) else None
            if atom is not None and atom in self.births:
                self.symbols.parts.setdefault(atom, (node, index, part, dim))

    def argument(self, arg: Any) -> Any:
        """A node or constant for an argument of a recorded call."""
        kind = type(arg)
        if kind is Value:
            return self.nodes[arg.number]
        if kind is Expr:
            try:
                return materialize(self.graph, self.env.simplify(arg), self.symbols)
            except KeyError as missing:
                raise UnsupportedProgramError(
                    "AOT114", f"the size {missing} is not an input of the program"
                ) from None
        if kind is list or kind is tuple:
            return [self.argument(part) for part in arg]
        return arg


def build_graph(
    inputs: Sequence[GraphInput],
    results: Sequence[tuple[Any, OutputDecl]],
    env: ShapeEnv,
    keep: Iterable[Value] = (),
    births: Births | None = None,
    backward: bool = False,
) -> GraphModule:
    """A graph module of dialect ``aten`` that computes ``results`` (values, expressions or None) from ``inputs``.

    ``keep`` are calls that must run even if nothing uses them: those that draw random numbers, and checks. ``births``:
    as for ``live_values``. Calls of a forward stay in recorded order, which is that of its draws and checks; copies for
    its ``backward`` come last.
    """
    builder = _Builder(env, births)
    declared = []
    for given in inputs:
        node = builder.place(given)
        declared.append(InputDecl(node.name, given.kind, given.spec, given.source))
    live = live_values([value for value, _ in results], builder.nodes, keep, births)
    for value in with_late_waits(in_order_of_use(live) if backward else live):
        builder.add(value)
    outputs = tuple([builder.argument(value) for value, _ in results])
    builder.graph.create_node("output", "output", (outputs,))
    with _use_lazy_graph_module(True):
        module: GraphModule = _make_graph_module(torch.nn.Module(), builder.graph)
    module.meta[DIALECT_KEY] = "aten"
    module.meta[SIGNATURE_KEY] = Signature(tuple(declared), tuple(decl for _, decl in results))
    module.meta[SHAPE_ENV_KEY] = env
    return module


def random_calls(values: Iterable[Value], backward: bool) -> list[Value]:
    """The calls of one half of the trace that draw random numbers."""
    return [v for v in values if v.backward is backward and isinstance(v.op, OpOverload) and is_random(v.op)]


def calls_that_may_fail(values: Iterable[Value]) -> list[Value]:
    """The calls of the forward that may raise because of what is in their tensors."""
    found = []
    for value in values:
        if value.backward or not isinstance(value.op, OpOverload):
            continue
        args = [arg.spec if isinstance(arg, Value) else arg for arg in value.args]
        if may_fail(value.op, args, value.kwargs):
            found.append(value)
    return found


def calls_for_effect(values: Iterable[Value], backward: bool) -> list[Value]:
    """The calls of one half of the trace that must run even if nothing uses them: they draw random numbers, return
    nothing and raise where something is wrong (``_linalg_check_errors``, ``_assert_async``), or are of operators that
    nothing is known of, in the backward. (In the forward these are among the calls that may fail.)"""
    silent = [
        v
        for v in values
        if v.backward is backward
        and isinstance(v.op, OpOverload)
        and (not v.op._schema.returns or (backward and is_unknown(v.op)))
    ]
    return [*random_calls(values, backward), *silent]
