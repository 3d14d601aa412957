"""Which mask a condition is about: ``mask.any()``, ``(chosen == e).sum() > 0``, ``mask.sum().item() == 0``."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import torch
from torch.fx import Node

from dynamo_capture.graph.graph_builder import is_given
from dynamo_capture.graph.region_body import Body
from dynamo_capture.values import SymValue, TensorValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.numbers.condition import DataCondition
from fx_interface.symbols import Expr, Relation, Symbol
from fx_interface.tensor_spec import SPEC_KEY, TensorSpec

_LONGEST: Final = 6
"""Operations between a mask and what says whether it has set elements."""
_FEW: Final = (1, 2, 3, 1 << 40)
_COUNTS: Final = frozenset({"sum", "count_nonzero"})
_SAME: Final = frozenset({"item", "reshape", "to", "bool", "long", "int"})
_NOT: Final = frozenset({"logical_not", "invert", "__invert__", "not_"})
_COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}


class DecisiveMask(NamedTuple):
    """A mask of bools, by its node, and the truth of a condition where no element of it is set."""

    node: Node
    empty: bool


def mask_that_decides(tx: Context, condition: Value) -> DecisiveMask | None:
    """The mask of which a value says whether any of its elements is set; None where it says something else."""
    if isinstance(tx.output, Body) or not tx.inference.follows_data:
        return None
    if isinstance(condition, TensorValue):
        is_plain = condition.meta.cls is torch.Tensor and condition.content is None
        return _of(condition.node, lambda count: bool(count)) if is_plain else None
    if isinstance(condition, SymValue):
        return _of_number(tx, Relation("!=", condition.expr, 0))
    if not isinstance(condition, DataCondition):
        return None
    if not condition.is_number:
        return _of(condition.tensor.node, lambda count: bool(count))
    return _of_number(tx, condition.relations[0]) if len(condition.relations) == 1 else None


def _of_number(tx: Context, relation: Relation) -> DecisiveMask | None:
    """Of a number that the program has taken out of a tensor."""
    atoms = relation.symbols
    node = tx.output.symbol_nodes.get(next(iter(atoms))) if len(atoms) == 1 else None
    if node is None or node.target != "item" or not isinstance(relation.lhs, Expr | int):
        return None
    (atom,) = atoms
    return _of(node, lambda count: relation.holds({atom: int(count)}))


def _of(node: Node, truth: Callable[[Any], bool]) -> DecisiveMask | None:
    """The mask of which ``node`` has the number of set elements, or whether there are any; ``truth``: what follows for
    the condition from what the node holds."""
    for _ in range(_LONGEST):
        name, (given, *others) = _name(node), (*node.args, None)[: max(len(node.args), 1)]
        if not node.op.startswith("call") or not isinstance(given, Node):
            return None
        if (name == "any" or name in _COUNTS) and not others and not node.kwargs:
            spec = given.meta.get(SPEC_KEY)
            if not isinstance(spec, TensorSpec) or spec.dtype is not torch.bool:
                return None
            held: Callable[[int], Any] = bool if name == "any" else int
            empty = bool(truth(held(0)))
            return None if any(bool(truth(held(n))) is empty for n in _FEW) else DecisiveMask(given, empty)
        step = _step(name, node, others)
        if step is None:
            return None
        truth = _behind(truth, step)
        node = given
    return None


def _step(name: str, node: Node, others: list[Any]) -> Callable[[Any], Any] | None:
    """What an operation makes of a number or a bool; None for an operation that may make something else of it."""
    if node.kwargs:
        return None
    if name in _COMPARISONS and len(others) == 1 and type(others[0]) in (int, bool, float):
        compare, other = _COMPARISONS[name], others[0]
        return lambda value: compare(value, other)
    if name in _NOT and _is_bool(node):
        return operator.not_
    if name not in _SAME:
        return None
    spec = node.meta.get(SPEC_KEY)
    if not isinstance(spec, TensorSpec):
        return lambda value: value
    return {torch.bool: bool, torch.int64: int}.get(spec.dtype)


def _behind(truth: Callable[[Any], bool], step: Callable[[Any], Any]) -> Callable[[Any], bool]:
    return lambda value: truth(step(value))


def _is_bool(node: Node) -> bool:
    spec = node.meta.get(SPEC_KEY)
    return isinstance(spec, TensorSpec) and spec.dtype is torch.bool


def _name(node: Node) -> str:
    return str(getattr(node.target, "__name__", node.target))


def count_of(tx: Context, mask: Node, body: Body) -> tuple[TensorValue, Symbol] | None:
    """The tensor that a mask is, and how many of its elements are set, as the operations in ``body`` have it; None
    where they do not index by it, or it may hold something else than where it was asked."""
    for value, count in tx.inference.counts.items():
        if isinstance(value, TensorValue) and value.node is mask:
            written = (*tx.output.overwritten, *body.overwritten)
            if any(_may_share(value.memory, one) for one in written):
                return None
            atom = count.as_symbol
            return None if atom is None else (value, atom)
    return None


def _may_share(memory: TensorValue, written: Any) -> bool:
    return written is memory or (is_given(memory) and is_given(written))
