"""Cutting a part out of a graph: a graph of its own, with what it reads of the rest as inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch.fx import Graph, GraphModule, Node

from fx_interface.errors import UnsupportedProgramError
from fx_interface.graph import SIZE_ARITHMETIC, location_of_node
from fx_interface.python_runtime.quick_dataclasses import dataclass
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
from fx_interface.symbols import Expr, ShapeEnv, Symbol, symbol
from fx_interface.tensor_spec import SPEC_KEY, SymSpec


@dataclass(frozen=True, slots=True)
class Part:
    """A graph of its own. ``inputs`` are nodes of the whole that it reads; the symbols follow them as inputs."""

    graph_module: GraphModule
    inputs: tuple[Node, ...]


def symbol_of(node: Node) -> Symbol | None:
    """The symbol that a node passes, if it is a placeholder of one."""
    spec = node.meta.get(SPEC_KEY)
    if node.op != "placeholder" or not isinstance(spec, SymSpec) or not isinstance(spec.expr, Expr):
        return None
    return spec.expr.as_symbol


def is_size(node: Node) -> bool:
    """Whether a node computes a size of others: made anew in each part that needs it."""
    return (
        node.op == "call_function"
        and node.target in SIZE_ARITHMETIC
        and isinstance(node.meta.get(SPEC_KEY), SymSpec)
    )


class Cutter:
    """Owner of one part under construction."""

    def __init__(
        self,
        whole: GraphModule,
        symbols: Sequence[Symbol],
        declared: Mapping[Node, InputDecl],
        env: ShapeEnv | None,
    ) -> None:
        self._whole = whole
        self._symbols = symbols
        self._declared = declared
        self._env = env
        self._graph = Graph()
        self._root = torch.nn.Module()
        self._made: dict[Node, Node] = {}
        self._inputs: list[Node] = []
        self._declarations: list[InputDecl] = []

    def cut(self, nodes: Sequence[Node], results: Sequence[Node]) -> Part:
        """The part that runs ``nodes`` and returns ``results``, some of them. UnsupportedProgramError AOT124."""
        own = set(nodes)
        for node in nodes:
            self._find_inputs(node, own)
        passed = {atom: self._symbol_input(atom) for atom in self._symbols}
        self._made |= {
            node: passed[atom]
            for node in self._outer_symbols(nodes)
            if node not in own and (atom := self._passed_symbol(node)) is not None
        }
        for node in nodes:
            self._copy(node)
        self._graph.output(tuple(self._made[node] for node in results))
        made = GraphModule(self._root, self._graph)
        made.meta[DIALECT_KEY] = "torch"
        made.meta[SIGNATURE_KEY] = Signature(
            tuple(self._declarations), tuple(OutputDecl(OutputKind.USER) for _ in results)
        )
        if self._env is not None:
            made.meta[SHAPE_ENV_KEY] = self._env
        return Part(made, tuple(self._inputs))

    def _find_inputs(self, node: Node, own: set[Node]) -> None:
        for read in node.all_input_nodes:
            if read in own or read in self._made or read.op == "get_attr":
                continue
            if symbol_of(read) is not None or self._passed_symbol(read) is not None:
                continue
            if is_size(read):
                self._find_inputs(read, own)
                continue
            if isinstance(read.meta.get(SPEC_KEY), SymSpec):
                raise UnsupportedProgramError(
                    "AOT124",
                    f"{read.name}, a number from data, is used beyond a branch or a loop",
                    where=location_of_node(read),
                )
            self._made[read] = self._input(read)

    def _input(self, node: Node) -> Node:
        made = self._graph.placeholder(node.name)
        made.meta[SPEC_KEY] = node.meta[SPEC_KEY]
        known = self._declared.get(node)
        kind, source = (InputKind.USER, None) if known is None else (known.kind, known.source)
        self._declarations.append(InputDecl(made.name, kind, node.meta[SPEC_KEY], source))
        self._inputs.append(node)
        return made

    def _symbol_input(self, atom: Symbol) -> Node:
        made = self._graph.placeholder(str(atom))
        made.meta[SPEC_KEY] = SymSpec(symbol(atom.name))
        self._declarations.append(InputDecl(made.name, InputKind.SYMBOL, made.meta[SPEC_KEY]))
        return made

    def _outer_symbols(self, nodes: Sequence[Node]) -> list[Node]:
        return list(self._whole.graph.nodes) if nodes else []

    def _passed_symbol(self, node: Node) -> Symbol | None:
        """The symbol among the part's inputs that a number of the whole is."""
        spec = node.meta.get(SPEC_KEY)
        atom = spec.expr.as_symbol if isinstance(spec, SymSpec) and isinstance(spec.expr, Expr) else None
        return atom if atom in self._symbols else None

    def _copy(self, node: Node) -> Node:
        for read in node.all_input_nodes:
            if read not in self._made:
                self._copy(read)
        if node.op == "get_attr":
            self._root.add_module(str(node.target), self._whole.get_submodule(str(node.target)))
        made = self._made.get(node)
        if made is None:
            made = self._made[node] = self._graph.node_copy(node, self._made.__getitem__)
        return made
