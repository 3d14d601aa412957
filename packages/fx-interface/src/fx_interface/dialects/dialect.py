"""What a dialect is to the verifier: a name, a check of each call, and which calls may be removed when unused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from torch.fx import GraphModule, Node

from fx_interface.errors import InvalidGraphError
from fx_interface.graph import SIZE_ARITHMETIC, location_of_node, size_value, spec_of_node
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import Expr, IntLike, Relation, ShapeEnv
from fx_interface.tensor_spec import SymFloatSpec, SymSpec, TensorSpec


@dataclass(frozen=True, slots=True)
class Context:
    """What a check may look at besides the node: the owning module and the compilation's sizes."""

    owner: GraphModule
    env: ShapeEnv | None

    def equal_sizes(self, lhs: IntLike, rhs: IntLike) -> bool:
        """Whether the two are known to be the same integer."""
        if lhs is rhs or (isinstance(lhs, int) and isinstance(rhs, int)):
            return lhs == rhs
        return self.env is not None and self.env.known(Relation("==", lhs, rhs)) is True

    def equal_shapes(self, lhs: tuple[IntLike, ...], rhs: tuple[IntLike, ...]) -> bool:
        """Whether two shapes are known to be the same."""
        return len(lhs) == len(rhs) and all(map(self.equal_sizes, lhs, rhs))


@dataclass(frozen=True, slots=True)
class Dialect:
    """A dialect's own rules. ``check_call`` raises InvalidGraphError for a call that breaks one of them.

    ``is_pure`` says whether a call may be dropped when nothing uses its result.
    """

    name: str
    check_call: Callable[[Node, Context], None]
    is_pure: Callable[[Node], bool]


def broken(code: str, node: Node, rule: str, action: str = "") -> NoReturn:
    """Raise InvalidGraphError that names the node, the rule it breaks, and the user's line."""
    called = node.op if node.op in ("placeholder", "output") else f"{node.op} {_short_name(node.target)}"
    raise InvalidGraphError(
        code, f"node {node.name} ({called}): {rule}", where=location_of_node(node), action=action
    )


def _short_name(target: Any) -> str:
    return target if isinstance(target, str) else getattr(target, "__name__", None) or str(target)


def is_size_arithmetic(node: Node) -> bool:
    """Whether the node computes a size: one of the size targets, with the spec of an integer."""
    return (
        node.op == "call_function"
        and node.target in SIZE_ARITHMETIC
        and isinstance(node.meta.get("spec"), SymSpec)
    )


def check_size_arithmetic(node: Node, context: Context) -> None:
    """A size node denotes what its target computes from its operands (FXI109)."""
    assert callable(node.target)
    rule = SIZE_ARITHMETIC[node.target]
    if len(node.args) != 2 or node.kwargs:
        broken("FXI109", node, "size arithmetic takes two positional arguments")
    computed = rule(*map(size_value, node.args))
    stated = size_value(node)
    if not context.equal_sizes(computed, stated):
        broken("FXI109", node, f"its spec says {stated}, but it computes {computed}")


def check_getitem(node: Node) -> None:
    """``operator.getitem`` picks one result of an operator with several (FXI108)."""
    held, index = node.args
    spec = spec_of_node(held) if isinstance(held, Node) else None
    if not isinstance(spec, (tuple, list)) or not isinstance(index, int):
        broken("FXI108", node, "getitem takes a node with several results and an integer")
    if not -len(spec) <= index < len(spec):
        broken("FXI108", node, f"getitem takes result {index} of {len(spec)}")
    if not same_spec(spec[index], spec_of_node(node)):
        broken("FXI108", node, f"its spec {spec_of_node(node)} is not that of result {index}, {spec[index]}")


def same_spec(lhs: Any, rhs: Any) -> bool:
    """Whether two specs describe the same values, but for alias sets, hints and gradients."""
    if isinstance(lhs, TensorSpec) and isinstance(rhs, TensorSpec):
        mine = (lhs.sizes, lhs.strides, lhs.dtype, lhs.device)
        return mine == (rhs.sizes, rhs.strides, rhs.dtype, rhs.device)
    if isinstance(lhs, SymFloatSpec) and isinstance(rhs, SymFloatSpec):
        return True
    if isinstance(lhs, (tuple, list)) and type(lhs) is type(rhs):
        return len(lhs) == len(rhs) and all(map(same_spec, lhs, rhs))
    return bool(lhs == rhs)


def leaves(value: Any) -> Iterator[Any]:
    """Every argument inside nested tuples, lists, dicts and slices."""
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, slice):
        yield from leaves((value.start, value.stop, value.step))
    else:
        yield value


def symbols_of(spec: Any) -> Iterator[IntLike]:
    """Every symbolic integer inside a spec."""
    if isinstance(spec, TensorSpec):
        yield from (n for n in (*spec.sizes, *spec.strides) if isinstance(n, Expr))
    elif isinstance(spec, SymSpec):
        yield from (n for n in (spec.expr,) if isinstance(n, Expr))
    elif isinstance(spec, (tuple, list)):
        for item in spec:
            yield from symbols_of(item)
