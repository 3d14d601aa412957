"""The canonical hash of a graph: equal for graphs that compute the same thing in the same way, in every process.

It depends on call targets, arguments, specs, kinds of inputs and outputs, ranges of symbols and what else is known of
them so far: recorded relations and learned facts (so take it before a backend adds to them). It does not depend on
names of nodes, symbols and attributes, on object identities, the order of dicts, hints, sources or the user's lines.
Symbols and alias sets are numbered in order of appearance. Whoever reuses what was compiled for an equal hash must
still check the shape guards that its compilation recorded, since those were answered from that compilation's hints.
"""

from __future__ import annotations

import hashlib
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from fx_interface.errors import UnsupportedProgramError
from fx_interface.graph import block_of, location_of_node
from fx_interface.regions import region_of
from fx_interface.serialization.target_names import target_name
from fx_interface.signature import DIALECT_KEY, SHAPE_ENV_KEY, Signature, signature_of
from fx_interface.symbols import Apply, Expr, IntLike, ShapeEnv, Symbol
from fx_interface.tensor_spec import (
    SPEC_KEY,
    ObjectSpec,
    SymFloatSpec,
    SymSpec,
    TensorSpec,
    ValueSpec,
)

HASH_VERSION = 2
"""Part of every hash; changes when the canonical form does."""


def canonical_hash(graph_module: GraphModule) -> str:
    """The graph's hash, 64 hexadecimal digits. UnsupportedProgramError FXI302 where an argument has no stable form."""
    return hashlib.sha256(canonical_form(graph_module).encode()).hexdigest()


def canonical_form(graph_module: GraphModule) -> str:
    """The text that ``canonical_hash`` hashes: for finding out why two graphs differ."""
    return _Writer(graph_module.meta.get(SHAPE_ENV_KEY)).module(graph_module)


class _Writer:
    """Writes one graph and its sub-graphs; owns the numbering of symbols and alias sets."""

    def __init__(self, env: ShapeEnv | None) -> None:
        self.env = env
        self.symbols: dict[Symbol, str] = {}
        self.aliases: dict[int, int] = {}
        self.exprs: dict[Expr, str] = {}
        self.specs: dict[TensorSpec, str] = {}
        self.blocks: dict[int, str] = {}

    def module(self, graph_module: GraphModule) -> str:
        head = f"fx-interface hash {HASH_VERSION} {graph_module.meta.get(DIALECT_KEY)}"
        lines = [head, *self.graph(graph_module.graph, graph_module)]
        signature = signature_of(graph_module)
        if signature is not None:
            lines.append(self.signature(signature))
        lines.extend(self.relations())
        lines.extend(f"{name} in {self.range_of(atom)}" for atom, name in self.symbols.items())
        return "\n".join(lines)

    def relations(self) -> list[str]:
        guards = [] if self.env is None else self.env.guards
        facts = [guard.relation for guard in guards]
        lines = [f"{self.integer(fact.lhs)} {fact.op} {self.integer(fact.rhs)}" for fact in facts]
        if self.env is not None:
            lines += [f"{self.integer(value)} {what}" for value, what in self.env.learned()]
        return sorted(lines)

    def graph(self, graph: Graph, owner: GraphModule) -> list[str]:
        numbers: dict[Node, int] = {}
        lines: list[str] = []
        for node in graph.nodes:
            numbers[node] = len(numbers)
            lines.append(self.node(node, numbers, owner))
        return lines

    def node(self, node: Node, numbers: dict[Node, int], owner: GraphModule) -> str:
        match node.op:
            case "placeholder":
                what = "in"
            case "output":
                return f"out {self.argument(node.args[0], numbers, node)}"
            case "get_attr":
                return self.block(block_of(node, owner))
            case "call_function":
                what = target_name(node.target)
            case _:
                what = f"{node.op} {node.target}"
        args = ",".join([self.argument(arg, numbers, node) for arg in node.args])
        if node.kwargs:
            named = sorted(node.kwargs.items())
            args += ";" + ",".join([f"{key}={self.argument(value, numbers, node)}" for key, value in named])
        return f"{what}({args})->{self.spec(node.meta.get(SPEC_KEY))}"

    def block(self, body: GraphModule) -> str:
        known = self.blocks.get(id(body))
        if known is None:
            known = self.blocks[id(body)] = f"#{len(self.blocks)}"
            lines = self.graph(body.graph, body)
            return f"block {known}" + "{\n" + "\n".join(lines) + "\n}"
        return f"block {known}"

    def argument(self, value: Any, numbers: dict[Node, int], node: Node) -> str:
        kind = type(value)
        if kind is Node:
            return f"%{numbers[value]}"
        if kind in _LITERALS:
            return repr(value)
        if isinstance(value, tuple):
            return f"({','.join([self.argument(item, numbers, node) for item in value])})"
        if isinstance(value, list):
            return f"[{','.join([self.argument(item, numbers, node) for item in value])}]"
        if isinstance(value, dict):
            items = sorted((repr(key), self.argument(item, numbers, node)) for key, item in value.items())
            return "{" + ",".join([f"{key}:{item}" for key, item in items]) + "}"
        if isinstance(value, slice):
            return f"slice{self.argument((value.start, value.stop, value.step), numbers, node)}"
        if isinstance(value, Expr):
            return self.integer(value)
        if isinstance(value, _REPRESENTED):
            return repr(value)
        if kind is type and value in _TYPES:
            return str(value.__name__)
        if callable(value) and region_of(node) is None:
            return target_name(value)
        raise UnsupportedProgramError(
            "FXI302",
            f"argument {value!r} of node {node.name} has no stable form",
            where=location_of_node(node),
        )

    def signature(self, signature: Signature) -> str:
        inputs = ",".join([f"{decl.kind.value}" for decl in signature.inputs])
        results = ",".join([f"{decl.kind.value}@{decl.input_index}" for decl in signature.outputs])
        return f"signature {inputs} -> {results}"

    def spec(self, spec: ValueSpec) -> str:
        if isinstance(spec, TensorSpec):
            known = self.specs.get(spec)
            if known is None:
                known = self.specs[spec] = self.tensor(spec)
            return known
        if isinstance(spec, SymSpec):
            return f"int {self.integer(spec.expr)}"
        if isinstance(spec, SymFloatSpec):
            return "float"
        if isinstance(spec, ObjectSpec):
            return f"object {spec.type_name!r}"
        if isinstance(spec, (tuple, list)):
            inner = ",".join([self.spec(item) for item in spec])
            return f"({inner})" if isinstance(spec, tuple) else f"[{inner}]"
        return "none"

    def tensor(self, spec: TensorSpec) -> str:
        sizes = ",".join([self.integer(size) for size in spec.sizes])
        strides = ",".join([self.integer(stride) for stride in spec.strides])
        alias = (
            "" if spec.alias is None else f" alias {self.aliases.setdefault(spec.alias, len(self.aliases))}"
        )
        grad = " grad" if spec.requires_grad else ""
        return f"{spec.dtype}[{sizes}|{strides}] {spec.device}{grad}{alias}"

    def integer(self, value: IntLike) -> str:
        if isinstance(value, int):
            return str(value)
        known = self.exprs.get(value)
        if known is None:
            products = sorted(
                "*".join([str(coefficient), *sorted([self.atom(atom) for atom in monomial])])
                for monomial, coefficient in value.terms
            )
            known = self.exprs[value] = "+".join(products)
        return known

    def atom(self, atom: Symbol | Apply) -> str:
        if isinstance(atom, Symbol):
            return self.symbols.setdefault(atom, f"s{len(self.symbols)}")
        operands = [self.integer(arg) for arg in atom.args]
        if atom.function in ("min", "max"):
            operands.sort()
        return f"{atom.function}({operands[0]},{operands[1]})"

    def range_of(self, atom: Symbol) -> str:
        info = None if self.env is None else self.env.symbols.get(atom)
        if info is None:
            return "?"
        origin = "data" if info.hint is None else "input"
        return f"{info.range.low}..{info.range.high} from {origin}"


_LITERALS = frozenset({int, float, bool, str, type(None), complex, type(...)})
_REPRESENTED = (torch.dtype, torch.device, torch.layout, torch.memory_format, range)
_TYPES = frozenset({int, float, bool, complex, torch.Tensor})
