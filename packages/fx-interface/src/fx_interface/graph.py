"""What a graph's nodes carry and the call targets that the interface itself adds: sizes and calls of sub-graphs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch.fx import Graph, GraphModule, Node

from fx_interface.errors import InvalidGraphError, UserLocation
from fx_interface.symbols import Apply, Expr, IntLike, Symbol, floordiv, maximum, minimum, mod
from fx_interface.tensor_spec import SPEC_KEY, SymSpec, ValueSpec

LOCATION_KEY = "where"
"""The key of ``Node.meta`` for the user's line (a ``UserLocation``) that a node came from."""

STACK_KEY = "stack"
"""The key of ``Node.meta`` for the user's whole stack, a tuple of ``UserLocation``, outermost first; optional."""

BORN_KEY = "born"
"""The key of ``Node.meta`` for the symbol without a hint (a ``Symbol``) that came up where the node was traced."""

EXPECTED_KEY = "expected"
"""The key of ``Node.meta`` for relations between sizes that the node's operation requires, and that only data can tell:
a tuple of ``Relation``. Run as it is, the operation checks them; whoever replaces it keeps the check."""

HOOKED_KEY = "hooked"
"""The key of ``Node.meta`` for whether the program puts a hook on the tensor, which is called with its gradient."""

_MEMO_ATTRIBUTE = "_fx_interface_sizes"


def call_block(body: Callable[..., Any], *args: Any) -> Any:
    """Call a repeated sub-graph. ``body`` is a ``get_attr`` of a ``GraphModule`` of the caller's dialect."""
    run: Callable[..., Any] = body.forward if isinstance(body, GraphModule) else body
    return run(*args)


def size_min(lhs: int, rhs: int) -> int:
    """The smaller of two sizes, also where they are torch's symbolic ones."""
    made: int = torch.sym_min(lhs, rhs)  # type: ignore[no-untyped-call]
    return made


def size_max(lhs: int, rhs: int) -> int:
    """The larger of two sizes, also where they are torch's symbolic ones."""
    made: int = torch.sym_max(lhs, rhs)  # type: ignore[no-untyped-call]
    return made


SizeRule: TypeAlias = Callable[[IntLike, IntLike], IntLike]

SIZE_ARITHMETIC: Mapping[Callable[..., Any], SizeRule] = {
    operator.add: operator.add,
    operator.sub: operator.sub,
    operator.mul: operator.mul,
    operator.floordiv: floordiv,
    operator.mod: mod,
    size_min: minimum,
    size_max: maximum,
}
"""Call targets that compute a size from two sizes, and what each does to symbolic integers."""

_APPLIED: Mapping[str, Callable[..., Any]] = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "min": size_min,
    "max": size_max,
}


def spec_of_node(node: Node) -> ValueSpec:
    """The spec of the node's value. InvalidGraphError FXI101 for a node that has none."""
    try:
        found: ValueSpec = node.meta[SPEC_KEY]
    except KeyError:
        raise InvalidGraphError(
            "FXI101",
            f"node {node.name} ({node.op} {node.target}) has no spec",
            where=location_of_node(node),
            action="whoever makes a node sets its spec with fx_interface.set_spec",
        ) from None
    return found


def set_spec(node: Node, spec: ValueSpec, where: UserLocation | None = None) -> Node:
    """Attach ``spec`` (and the user's line) to a node and return the node."""
    node.meta[SPEC_KEY] = spec
    if where is not None:
        node.meta[LOCATION_KEY] = where
    return node


def location_of_node(node: Node) -> UserLocation | None:
    """The user's line that the node came from, if known."""
    found = node.meta.get(LOCATION_KEY)
    return found if isinstance(found, UserLocation) else None


def stack_of_node(node: Node) -> tuple[UserLocation, ...]:
    """The user's stack that the node came from, outermost first; only the line, or nothing, if no more is known."""
    found = node.meta.get(STACK_KEY)
    if isinstance(found, tuple):
        return found
    where = location_of_node(node)
    return () if where is None else (where,)


def placeholders(graph: Graph) -> list[Node]:
    """The graph's inputs, in order."""
    return graph.find_nodes(op="placeholder")


def output_node(graph: Graph) -> Node:
    """The graph's output node. InvalidGraphError FXI107 for a graph without one."""
    last: Node | None = next(iter(reversed(graph.nodes)), None)
    if last is None or last.op != "output":
        raise InvalidGraphError("FXI107", "the graph does not end in an output node")
    return last


def outputs(graph: Graph) -> tuple[Any, ...]:
    """The graph's results, in order. InvalidGraphError FXI107 where the output is no tuple."""
    held = output_node(graph).args[0]
    if not isinstance(held, (tuple, list)):
        raise InvalidGraphError("FXI107", f"the output node holds {held!r}, not a tuple of results")
    return tuple(held)


def symbol_nodes(graph: Graph) -> dict[Symbol, Node]:
    """For each symbol the first node whose spec is exactly that symbol."""
    found: dict[Symbol, Node] = {}
    for node in graph.nodes:
        spec = node.meta.get(SPEC_KEY)
        if isinstance(spec, SymSpec) and isinstance(spec.expr, Expr):
            atom = spec.expr.as_symbol
            if atom is not None:
                found.setdefault(atom, node)
    return found


def block_of(node: Node, owner: GraphModule) -> GraphModule:
    """The sub-graph that a ``call_block`` node calls, or that a ``get_attr`` node names."""
    source = node.args[0] if node.target is call_block else node
    body = None
    if isinstance(source, Node) and source.op == "get_attr":
        body = getattr(owner, str(source.target), None)
    if not isinstance(body, GraphModule):
        raise InvalidGraphError(
            "FXI113",
            f"node {node.name} does not name a sub-graph of its module",
            where=location_of_node(node),
        )
    return body


def materialize(graph: Graph, value: IntLike, symbol_nodes: Mapping[Symbol, Node]) -> int | Node:
    """A graph argument that denotes ``value``: the int itself, or a node that computes the expression.

    Nodes are placed as early as their operands allow, so that one node per expression serves every later use; the
    graph remembers them. KeyError names a symbol that ``symbol_nodes`` lacks.
    """
    if isinstance(value, int):
        return value
    memo: dict[Expr, Node] = graph.__dict__.setdefault(_MEMO_ATTRIBUTE, {})
    return _materialize_expr(graph, value, symbol_nodes, memo)


def _materialize_expr(
    graph: Graph, expr: Expr, symbol_nodes: Mapping[Symbol, Node], memo: dict[Expr, Node]
) -> Node:
    atom = expr.as_symbol
    if atom is not None:
        return symbol_nodes[atom]
    known = memo.get(expr)
    if known is not None and known.graph is graph and not known._erased:
        return known
    ordered = sorted(expr.terms, key=lambda term: term[1] < 0)  # positive terms first: 4 - s0, not -s0 + 4
    (monomial, coefficient), *rest = ordered
    total = _materialize_product(graph, monomial, coefficient, symbol_nodes, memo)
    for monomial, coefficient in rest:
        target = operator.add if coefficient > 0 else operator.sub
        term = _materialize_product(graph, monomial, abs(coefficient), symbol_nodes, memo)
        total = _size_node(graph, target, total, term, memo)
    assert isinstance(total, Node)
    return total


def _materialize_product(
    graph: Graph,
    monomial: Sequence[Symbol | Apply],
    coefficient: int,
    symbol_nodes: Mapping[Symbol, Node],
    memo: dict[Expr, Node],
) -> int | Node:
    product: int | Node = coefficient
    for atom in monomial:
        if isinstance(atom, Symbol):
            factor: int | Node = symbol_nodes[atom]
        else:
            lhs, rhs = (
                arg if isinstance(arg, int) else _materialize_expr(graph, arg, symbol_nodes, memo)
                for arg in atom.args
            )
            factor = _size_node(graph, _APPLIED[atom.function], lhs, rhs, memo)
        product = factor if product == 1 else _size_node(graph, operator.mul, product, factor, memo)
    return product


def _size_node(
    graph: Graph, target: Callable[..., Any], lhs: int | Node, rhs: int | Node, memo: dict[Expr, Node]
) -> int | Node:
    value = SIZE_ARITHMETIC[target](size_value(lhs), size_value(rhs))
    if isinstance(value, int):
        return value
    known = memo.get(value)
    if known is not None and known.graph is graph and not known._erased:
        return known
    operands = [operand for operand in (lhs, rhs) if isinstance(operand, Node)]
    with graph.inserting_after(_end_of_placeholders(max(operands))):
        node = graph.call_function(target, (lhs, rhs))
    memo[value] = set_spec(node, SymSpec(value))
    return node


def size_value(argument: Any) -> IntLike:
    """The integer that a graph argument denotes: an int itself, or the expression in a node's ``SymSpec``.

    InvalidGraphError FXI109 for anything else.
    """
    if isinstance(argument, int):
        return argument
    spec = spec_of_node(argument) if isinstance(argument, Node) else None
    if not isinstance(spec, SymSpec):
        raise InvalidGraphError("FXI109", f"{argument!r} is used as a size, but its spec is {spec!r}")
    return spec.expr


def _end_of_placeholders(node: Node) -> Node:
    while node.op == "placeholder" and node.next.op == "placeholder":
        node = node.next
    return node
