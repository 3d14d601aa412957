"""What is done for each of no rows changes nothing: it is done whether there are rows or not.

    rows, = torch.where(chosen == e)
    if rows.numel() == 0:                       # the graph goes on as if there were some
        continue
    out.index_add_(0, rows, expert(x[rows]))

    if mask.any():                              # the same, of the rows where a mask is set
        out[mask] += expert(x[mask])

The branch is tried on a sub-graph first, which is thrown away. It may change no object, draw and raise nothing, and
write to tensors of this graph alone, at places that come with the rows. Where autograd follows it, what has not been
done has no gradient, and not one of zeros: then the graph states that there are rows (``assumed_rows.py``).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from dynamo_capture.graph.graph_builder import GraphOutput, WrittenTensor
from dynamo_capture.graph.region_body import Body
from dynamo_capture.semantics.regions.steered.decisive_masks import DecisiveMask, count_of
from dynamo_capture.semantics.regions.steered.trials import Trial, is_noticed, is_traced, may_try
from dynamo_capture.values import SymValue, TensorValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.numbers.condition import DataCondition
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import Expr, Relation, Symbol
from fx_interface.tensor_spec import SPEC_KEY, TensorSpec

_MOST_NODES: Final = 256
_BY_INDEX: Final = frozenset(
    {
        *(
            "index_add_",
            "index_copy_",
            "index_fill_",
            "index_put_",
            "scatter_",
            "scatter_add_",
            "scatter_reduce_",
        ),
        operator.setitem,
    }
)
"""Operations that write where an index says, and nowhere if it has no elements."""
_BY_MASK: Final = frozenset({"index_put_", "masked_fill_", "masked_scatter_", operator.setitem})
"""Those that write where a mask says."""
_SOME: Final = (1, 2, 3, 1 << 40)


class _OfRows(Trial):
    """The branch as a sub-graph. ``writing``: what writes to tensors of its surroundings, those are ``roots``."""

    def __init__(self, parent: GraphOutput) -> None:
        super().__init__(parent)
        self.roots: list[WrittenTensor] = []
        self.writing: list[Node] = []
        self._writes = False

    def write(self, written: Sequence[WrittenTensor], lasting: Sequence[WrittenTensor] = ()) -> None:
        GraphOutput.write(self, written, lasting)
        outside = [tensor.memory for tensor in written if tensor.memory.node.graph is not self.graph]
        self.roots += outside
        self._writes = bool(outside) or not written

    def call(self, *args: Any, **options: Any) -> Node:
        node = super().call(*args, **options)
        if self._writes:
            self.writing.append(node)
            self._writes = False
        return node


def rows_that_decide(tx: Context, condition: Value) -> tuple[Symbol, bool] | None:
    """The number from data of which a value says whether it is 0, and the value's truth where it is."""
    if isinstance(condition, SymValue):
        relations: Sequence[Relation] = (Relation("!=", condition.expr, 0),)
    elif isinstance(condition, DataCondition) and condition.tensor is None:
        relations = condition.relations
    else:
        return None
    if len(relations) != 1:
        return None
    sides = (tx.env.simplify(relations[0].lhs), tx.env.simplify(relations[0].rhs))
    relation = Relation(relations[0].op, *sides)
    atoms = relation.symbols
    if len(atoms) != 1 or not all(_is_multiple(side) for side in sides):
        return None
    (atom,) = atoms
    if not _is_size(tx.output, atom):
        return None
    empty = relation.holds({atom: 0})
    return None if any(relation.holds({atom: some}) is empty for some in _SOME) else (atom, empty)


def _is_multiple(side: Any) -> bool:
    """Whether a number is linear in symbols, so that two such are equal once at most."""
    if not isinstance(side, Expr):
        return True
    return all(
        len(monomial) <= 1 and all(isinstance(a, Symbol) for a in monomial) for monomial, _ in side.terms
    )


def _is_size(output: Any, atom: Symbol) -> bool:
    """Whether it is how many rows a tensor has, which is not negative."""
    while output is not None:
        if atom in output.born:
            return True
        output = getattr(output, "parent", None)
    return False


@dataclass(frozen=True, slots=True)
class Skippable:
    """A branch that is skipped where there are no rows. ``is_harmless``: nobody can tell that it has been done then;
    ``mask``: the rows are where it is set."""

    rows: Symbol
    is_harmless: bool
    mask: TensorValue | None = None


def skippable(tx: Context, decides: Symbol | DecisiveMask, run: Callable[[], None]) -> Skippable | None:
    """What ``run`` is, which is not called where there are no rows; None where it cannot be in a graph, or does not
    index by the mask that ``decides``."""
    counts = dict(tx.inference.counts)
    try:
        body = _tried(tx, run)
        if body is None:
            return None
        if isinstance(decides, Symbol):
            return Skippable(decides, _is_harmless(body, frozenset({decides})))
        found = count_of(tx, decides.node, body)
        if found is None:
            return None
        mask, rows = found
        return Skippable(
            rows, _is_harmless(body, frozenset({rows}), mask=body.lifted.get(decides.node)), mask
        )
    finally:
        tx.inference.counts.clear()
        tx.inference.counts.update(counts)


def written_by_rows(tx: Context, run: Callable[[], None]) -> list[int] | None:
    """Which of the operations that ``run`` makes write, each where a number of rows says. None: somebody can tell that
    ``run`` has been called, even if there are none of these rows."""
    counts = dict(tx.inference.counts)
    body = _tried(tx, run)
    tx.inference.counts.clear()
    tx.inference.counts.update(counts)
    if body is None:
        return None
    sizes = [rows_of_write(node) for node in body.writing]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes) or not all(_is_size(body, atom) for atom in known):
        return None
    calls = [node for node in body.graph.nodes if node.op.startswith("call")]
    places = [calls.index(node) for node in body.writing]
    return places if _is_harmless(body, frozenset(known), may_fail=True) else None


def rows_of_write(node: Node) -> Symbol | None:
    """How many elements the index has that says where an operation writes."""
    if node.target not in _BY_INDEX:
        return None
    for arg in _nodes(node)[1:]:
        spec = arg.meta.get(SPEC_KEY)
        if isinstance(spec, TensorSpec) and spec.dtype is torch.int64:
            for size in spec.sizes:
                atom = size.as_symbol if isinstance(size, Expr) else None
                if atom is not None:
                    return atom
    return None


def _tried(tx: Context, run: Callable[[], None]) -> _OfRows | None:
    """The sub-graph that ``run`` makes; None where it can not be put into one."""
    if not may_try(tx) or (isinstance(tx.output, Body) and not isinstance(tx.output, _OfRows)):
        return None
    body = _OfRows(tx.output)
    return body if is_traced(tx, body, run) else None


def _is_harmless(
    body: _OfRows, rows: frozenset[Symbol], may_fail: bool = False, mask: Node | None = None
) -> bool:
    """Whether it leaves nothing behind where there are none of these ``rows``, and no element of the ``mask`` is set.
    Where it ``may_fail``, the frame runs as it was written."""
    if is_noticed(body, body.roots):
        return False
    if sum(node.op.startswith("call") for node in body.graph.nodes) > _MOST_NODES:
        return False
    writes_nothing = all(
        (node.target in _BY_INDEX and any(_is_empty(arg, rows, indices=True) for arg in _nodes(node)[1:]))
        or _writes_by(node, mask)
        for node in body.writing
    )
    fails = not may_fail and not all(
        any(_is_empty(a, rows) for a in _nodes(n)) or _reads_by(n, mask) for n in body.failing
    )
    return writes_nothing and not fails


def _nodes(node: Node) -> list[Node]:
    """The nodes among the arguments, in order."""
    found: list[Node] = []
    map_arg((node.args, node.kwargs), found.append)
    return found


def _writes_by(node: Node, mask: Node | None) -> bool:
    """Whether an operation writes where a mask is set, and nowhere else."""
    return mask is not None and node.target in _BY_MASK and any(part is mask for part in _key(node))


def _reads_by(node: Node, mask: Node | None) -> bool:
    """Whether an operation takes what a mask selects, by that alone: it fails because of forms, if at all."""
    if mask is None or node.target is not operator.getitem:
        return False
    return [part for part in _key(node) if isinstance(part, Node)] == [mask]


def _key(node: Node) -> Sequence[Any]:
    """The parts of an index."""
    if len(node.args) < 2:
        return ()
    key = node.args[1]
    return key if isinstance(key, (tuple, list)) else (key,)


def _is_empty(node: Node, rows: frozenset[Symbol], indices: bool = False) -> bool:
    """Whether a tensor has no elements where there are no rows; ``indices``: and those are integers."""
    spec = node.meta.get(SPEC_KEY)
    if not isinstance(spec, TensorSpec) or (indices and spec.dtype is not torch.int64):
        return False
    none = dict.fromkeys(rows, 0)
    return any(
        isinstance(size, Expr) and size.symbols <= rows and Relation("==", size, 0).holds(none)
        for size in spec.sizes
    )
