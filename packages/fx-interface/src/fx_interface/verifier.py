"""The verifier: raises ``InvalidGraphError`` for a graph that breaks a rule of its dialect, naming node, rule and line.

Rules of every dialect (codes): 100 a known dialect; 101 each node has a spec; 102 node kinds; 103 call targets; 106
placeholders and signature agree; 107 the output; 108 arguments; 109 size arithmetic; 110 well-formed specs; 111 order
of definition and use; 113 calls of sub-graphs; 114 sizes are materialised. The dialects add 104 no mutation, 105
explicit factories, 112 operands of primitives.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.fx import GraphModule, Node

from fx_interface.dialect_rules.aten import ATEN
from fx_interface.dialect_rules.prims import PRIMS_DIALECT
from fx_interface.dialect_rules.torch import TORCH
from fx_interface.dialects.dialect import Context, Dialect, broken, leaves, same_spec, symbols_of
from fx_interface.errors import InvalidGraphError
from fx_interface.graph import block_of, output_node, outputs, placeholders, spec_of_node
from fx_interface.regions import RegionCall, bodies_of, region_of
from fx_interface.signature import (
    DIALECT_KEY,
    SHAPE_ENV_KEY,
    InputKind,
    OutputKind,
    Signature,
    signature_of,
)
from fx_interface.symbols import Expr
from fx_interface.tensor_spec import SymSpec, TensorSpec

DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in (TORCH, ATEN, PRIMS_DIALECT)}
"""The three dialects by name."""

_NEEDS_INPUT = frozenset({OutputKind.MUTATED_INPUT, OutputKind.ALIAS_OF_INPUT, OutputKind.GRADIENT})


def verify(graph_module: GraphModule, dialect: str | None = None) -> None:
    """Check every rule of ``dialect`` (default: the one the graph names). InvalidGraphError FXI1xx if one is broken."""
    rules = dialect_of(graph_module, dialect)
    context = Context(graph_module, graph_module.meta.get(SHAPE_ENV_KEY))
    _verify_body(graph_module, rules, context, checked=set())
    signature = signature_of(graph_module)
    if signature is not None:
        _check_signature(graph_module, signature)


def dialect_of(graph_module: GraphModule, name: str | None = None) -> Dialect:
    """The dialect of that name, or the one that the graph names. InvalidGraphError FXI100 for none."""
    stated = graph_module.meta.get(DIALECT_KEY)
    chosen = str(stated) if name is None else name
    if chosen not in DIALECTS:
        raise InvalidGraphError("FXI100", f"{chosen!r} is no dialect", action=f"one of {', '.join(DIALECTS)}")
    if stated is not None and stated != chosen:
        raise InvalidGraphError("FXI100", f"the graph says that its dialect is {stated}, not {chosen}")
    return DIALECTS[chosen]


def _verify_body(graph_module: GraphModule, rules: Dialect, context: Context, checked: set[int]) -> None:
    defined: set[Node] = set()
    body_began = False
    for node in graph_module.graph.nodes:
        for used in node.all_input_nodes:
            if used not in defined:
                broken("FXI111", node, f"it uses {used.name}, which is not defined before it in this graph")
        if node.op == "placeholder" and body_began:
            broken("FXI106", node, "placeholders stand before all other nodes")
        body_began = body_began or node.op != "placeholder"
        _verify_node(node, rules, context, checked)
        defined.add(node)
    for result in outputs(graph_module.graph):
        if not isinstance(result, (Node, int, float, bool, type(None))):
            broken("FXI107", output_node(graph_module.graph), f"{result!r} is no result of a graph")


def _verify_node(node: Node, rules: Dialect, context: Context, checked: set[int]) -> None:
    for leaf in leaves((node.args, node.kwargs)):
        _check_argument(node, leaf)
    match node.op:
        case "output":
            return
        case "get_attr":
            _check_block_reference(node, context)
            body = block_of(node, context.owner)
            if id(body) not in checked:
                checked.add(id(body))
                _verify_body(body, rules, Context(body, context.env), checked)
            return
        case "call_module":
            broken("FXI102", node, "calls of modules are not part of any dialect")
    _check_spec(node, spec_of_node(node), context)
    if node.op == "placeholder":
        return
    called = region_of(node)
    if called is None:
        rules.check_call(node, context)
        return
    if rules.name not in called.dialects:
        broken("FXI103", node, f"a {called.name} region is no part of the dialect {rules.name}")
    called.check(RegionCall(node, bodies_of(node, context.owner), context))


def _check_argument(node: Node, leaf: Any) -> None:
    if isinstance(leaf, torch.Tensor):
        broken("FXI108", node, "a tensor stands in the arguments", "make it a placeholder with a source")
    if isinstance(leaf, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        broken("FXI108", node, f"torch's own symbolic number {leaf} stands in the arguments")
    if isinstance(leaf, Expr):
        broken("FXI114", node, f"the size {leaf} is not materialised", "use fx_interface.materialize")


def _check_spec(node: Node, spec: Any, context: Context) -> None:
    if isinstance(spec, (tuple, list)):
        for item in spec:
            _check_spec(node, item, context)
    if isinstance(spec, TensorSpec) and len(spec.sizes) != len(spec.strides):
        broken("FXI110", node, f"{len(spec.sizes)} sizes, but {len(spec.strides)} strides")
    for value in symbols_of(spec):
        assert isinstance(value, Expr)
        for atom in sorted(value.symbols, key=str):
            if context.env is None or atom not in context.env.symbols:
                broken("FXI110", node, f"the graph's shape environment does not know the symbol {atom}")


def _check_block_reference(node: Node, context: Context) -> None:
    block_of(node, context.owner)
    for user in node.users:
        called = region_of(user)
        count = 0 if called is None else called.bodies
        if node not in user.args[:count] or node in user.args[count:] or node in user.kwargs.values():
            broken("FXI102", node, f"get_attr is for sub-graphs of regions, but {user.name} uses it")


def _check_signature(graph_module: GraphModule, signature: Signature) -> None:
    places = placeholders(graph_module.graph)
    if len(places) != len(signature.inputs):
        raise InvalidGraphError(
            "FXI106", f"{len(places)} placeholders, but {len(signature.inputs)} inputs in the signature"
        )
    targets: set[Any] = set()
    for place, declared in zip(places, signature.inputs, strict=True):
        if place.target in targets:
            broken("FXI106", place, f"two placeholders are called {place.target}")
        targets.add(place.target)
        if place.name != declared.name:
            broken("FXI106", place, f"the signature calls this input {declared.name}")
        if not same_spec(spec_of_node(place), declared.spec):
            broken("FXI106", place, f"its spec is {spec_of_node(place)}, the signature says {declared.spec}")
        if declared.kind is InputKind.SYMBOL and not _is_one_symbol(declared.spec):
            broken("FXI106", place, f"a symbol input is exactly one symbol, not {declared.spec}")
    _check_outputs(graph_module, signature)


def _is_one_symbol(spec: Any) -> bool:
    return isinstance(spec, SymSpec) and isinstance(spec.expr, Expr) and spec.expr.as_symbol is not None


def _check_outputs(graph_module: GraphModule, signature: Signature) -> None:
    node = output_node(graph_module.graph)
    results = outputs(graph_module.graph)
    if len(results) != len(signature.outputs):
        broken(
            "FXI107", node, f"{len(results)} results, but {len(signature.outputs)} outputs in the signature"
        )
    for position, declared in enumerate(signature.outputs):
        index = declared.input_index
        if index is None and declared.kind in _NEEDS_INPUT:
            broken("FXI107", node, f"result {position} is {declared.kind.value}, but of no input")
        if index is not None and index < 0:
            broken("FXI107", node, f"result {position} belongs to input {index}, which does not exist")
        if index is not None and declared.kind is not OutputKind.GRADIENT and index >= len(signature.inputs):
            broken("FXI107", node, f"result {position} belongs to input {index}, which does not exist")
