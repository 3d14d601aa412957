"""Edges: how the elements that a computation reads correspond to the points it runs over."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import IntLike, product
from inductor_codegen.lower.values import (
    Cat,
    Depthwise,
    Formula,
    Gather,
    Lowered,
    Operand,
    Pad,
    Pointwise,
    Reduction,
    Value,
    operands_of,
)
from inductor_codegen.lower.views import Broadcast, Permute, Reshape, Sizes, is_one

FEW = 16
"""Elements of a tensor to each that is looked up, from which on a value is computed where it is looked up: there is a
vector of others for it, and the memory of the whole."""


class Match(Enum):
    """How a consumer's points meet a producer's elements."""

    SAME = "same"
    """Point k, counted in row-major order, reads element k."""
    REPEATED = "repeated"
    """The same over some of the consumer's dimensions; along the others the element repeats."""
    OTHER = "other"
    """Anything else: transposed, cut out, looked up."""


@dataclass(frozen=True, slots=True)
class Edge:
    """``kept`` are the consumer's dimensions along which the element changes; ``repeats``: elements are read
    more than once; ``few``: far fewer elements are read than there are; ``stored``: they are read in memory.
    """

    match: Match
    kept: tuple[int, ...] = ()
    repeats: bool = False
    few: bool = False
    stored: bool = False


class Edges:
    """The edges of a graph's values. Most operands are seen through no view, over few different sizes: their edges are
    made once."""

    def __init__(self) -> None:
        self._plain: dict[Sizes, Edge] = {}

    def of(self, value: Value) -> list[tuple[int, Edge]]:
        """The values that ``value`` is computed from, each with its edge."""
        formula = value.formula
        if formula is None:
            return []
        found: list[tuple[int, Edge]] = []
        for operand in operands_of(formula):
            read = (operand.source, self._edge(formula, operand, value))
            if read not in found:
                found.append(read)
        return found

    def _edge(self, formula: Formula, operand: Operand, value: Value) -> Edge:
        match formula:
            case Pointwise():
                return self._classified(operand, value.sizes)
            case Reduction():
                return self._classified(operand, formula.operand.sizes)
            case Cat() | Pad():
                return Edge(Match.OTHER, (), _repeats(operand))
            case Gather(table, _, index_dims):
                if operand is table:
                    return Edge(Match.OTHER, (), True, _are_few(value.sizes, operand.sizes))
                inner = classify(operand, operand.sizes)
                if inner.match is Match.SAME:
                    return _kept_edge(index_dims, value.sizes)
                return Edge(Match.OTHER, (), True)
            case Depthwise(bias=bias):
                return Edge(Match.OTHER, (), True, stored=operand is not bias)
        return Edge(Match.OTHER, (), True)

    def _classified(self, operand: Operand, sizes: Sizes) -> Edge:
        if operand.views:
            return classify(operand, sizes)
        found = self._plain.get(sizes)
        if found is None:
            found = self._plain[sizes] = classify(operand, sizes)
        return found


def _are_few(points: Sizes, elements: Sizes) -> bool:
    """Whether ``FEW`` times as many elements as points are there, whatever the sizes that both have."""
    rest = list(elements)
    alone: list[IntLike] = []
    for size in points:
        if size in rest:
            rest.remove(size)
        else:
            alone.append(size)
    read, there = product(alone), product(rest)
    return isinstance(read, int) and isinstance(there, int) and read * FEW <= there


def _repeats(operand: Operand) -> bool:
    return any(isinstance(view, Broadcast) for view in operand.views)


def _kept_edge(kept: tuple[int, ...], sizes: Sizes) -> Edge:
    kept = tuple(dim for dim in kept if not is_one(sizes[dim]))
    whole = tuple(dim for dim, size in enumerate(sizes) if not is_one(size))
    if kept == whole:
        return Edge(Match.SAME, kept)
    return Edge(Match.REPEATED if kept == tuple(sorted(kept)) else Match.OTHER, kept, True)


def classify(operand: Operand, sizes: Sizes) -> Edge:
    """The edge between points of ``sizes`` (the operand's own, seen through its views) and the source's
    elements.
    """
    runs: list[tuple[int, ...]] | None = [() if is_one(size) else (dim,) for dim, size in enumerate(sizes)]
    flat = tuple(dim for run in runs for dim in run)  # type: ignore[union-attr]
    if not operand.views:
        return Edge(Match.SAME, flat)
    whole = flat
    for view in reversed(operand.views):
        match view:
            case Reshape():
                runs = None if runs is None else _through_reshape(view, runs, sizes)
                continue
            case Broadcast(operand_sizes, dims) if runs is not None:
                runs = [
                    () if is_one(size) else runs[dim] for size, dim in zip(operand_sizes, dims, strict=True)
                ]
            case Permute(dims) if runs is not None:
                moved: list[tuple[int, ...]] = [()] * len(dims)
                for axis, dim in enumerate(dims):
                    moved[dim] = runs[axis]
                runs = moved
            case _:
                return Edge(Match.OTHER, (), len(flat) < len(whole) or _repeats(operand))
        flat = tuple(dim for run in runs for dim in run)
    if flat == whole:
        return Edge(Match.SAME, flat)
    repeats = len(flat) < len(whole)
    return Edge(Match.REPEATED if flat == tuple(sorted(flat)) else Match.OTHER, flat, repeats)


def _through_reshape(
    view: Reshape, runs: list[tuple[int, ...]], sizes: Sizes
) -> list[tuple[int, ...]] | None:
    """The runs of the operand's dimensions; None where a reshape cuts a consumer dimension in two."""
    found: list[tuple[int, ...]] = [()] * len(view.operand_sizes)
    for segment in view.segments:
        pending = [dim for axis in segment.result for dim in runs[axis]]
        for axis in segment.operand:
            run: list[int] = []
            filled: IntLike = 1
            while filled != view.operand_sizes[axis]:
                if not pending:
                    return None
                run.append(pending.pop(0))
                filled = product([sizes[dim] for dim in run])
            found[axis] = tuple(run)
        if pending:
            return None
    return found


def row_source(
    number: int, depth: int, lowered: Lowered, edges: Sequence[list[tuple[int, Edge]]]
) -> Value | None:
    """The reduction that a value comes from through up to ``depth`` pointwise steps over the same elements."""
    value = lowered.values[number]
    if isinstance(value.formula, Reduction):
        return value
    if not isinstance(value.formula, Pointwise) or depth == 0:
        return None
    for source, edge in edges[number]:
        if edge.match is Match.SAME:
            found = row_source(source, depth - 1, lowered, edges)
            if found is not None:
                return found
    return None


def reads_across(number: int, depth: int, lowered: Lowered, edges: Sequence[list[tuple[int, Edge]]]) -> bool:
    """Whether a value is computed, through up to ``depth`` pointwise steps over the same elements, from others than its
    own."""
    if not isinstance(lowered.values[number].formula, Pointwise) or depth == 0:
        return False
    return any(
        edge.match is Match.OTHER
        or (edge.match is Match.SAME and reads_across(source, depth - 1, lowered, edges))
        for source, edge in edges[number]
    )
