"""Index-set splitting: loops whose bodies choose by their indices become several loops that do not choose.

    for i1 < 102: out[i1] = if(0 <= i1 + -3 < 96; in[i1 + -3]; 0)
    ->  for i1 < 3: out[i1] = 0;   for 3 <= i1 < 99: out[i1] = in[i1 + -3];   for 99 <= i1 < 102: out[i1] = 0

What outer loops decide is asked once a row. Each part's text is compiled: there are but as many as pay for themselves
(``docs/decisions/0041-loops-are-split-where-they-choose.md``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import TypeAlias

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from inductor_codegen.ir.facts.index_facts import IndexFacts, Simplifier, questions
from inductor_codegen.ir.index import Index, Loaded, LoopVar, as_index
from inductor_codegen.ir.kernel import Statement
from inductor_codegen.ir.scalar import Guarded, ScalarBuilder
from inductor_codegen.ir.traverse import postorder, roots_of

MOST_PARTS = 12
GROWTH = 3
"""How many times as many scalars as the whole loop the parts may have together."""
ALWAYS_ALLOWED = 48
"""Scalars that the parts may have in any case."""
SHORTEST = 8
"""Points of a loop that is split: shorter ones are not worth it."""


@dataclass(frozen=True, slots=True)
class Part:
    """Statements for points at which nothing more is known to be chosen."""

    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """``yes`` for the rows where ``index >= 0`` for all ``indices``, else ``no``."""

    indices: tuple[Index, ...]
    yes: Parts
    no: Parts


@dataclass(frozen=True, slots=True)
class Cut:
    """``below`` for the points of the loop that come before ``at``, ``above`` for the others."""

    at: Index
    below: Parts
    above: Parts


Parts: TypeAlias = Part | Choice | Cut


def parts_of(statements: Sequence[Statement], loop: LoopVar, least: Mapping[str, int] | None = None) -> Parts:
    """The parts of a pass whose innermost loop is ``loop``; one part if splitting does not pay. ``least``: what sizes
    are at least, by name."""
    whole = Part(tuple(statements))
    if isinstance(loop.extent, int) and loop.extent < SHORTEST:
        return whole
    size = _scalars(whole.statements)
    asked = list(_questions(whole.statements, loop))
    if not asked:
        return whole
    for rows in Rows if any(loop not in index.variables() for index in asked) else (Rows.NONE,):
        splitter = _Splitter(loop, rows, max(ALWAYS_ALLOWED, GROWTH * size))
        found = splitter.split(whole.statements, IndexFacts((), least))
        if found is not None:
            return found
    return whole


def _questions(statements: Sequence[Statement], loop: LoopVar) -> Iterator[Index]:
    """Indices whose sign decides something at each point. What is only the same in a whole row is computed once."""
    for node in postorder(root for statement in statements for root in roots_of(statement)):
        decides = isinstance(node, Guarded) or node.dtype == torch.bool
        for index in questions(node):
            known = not any(isinstance(atom, Loaded) for atom in index.atoms())
            if known and (decides or loop in index.variables()):
                yield index


def _scalars(statements: Sequence[Statement]) -> int:
    return len(postorder(root for statement in statements for root in roots_of(statement)))


class Rows(Enum):
    """What is asked once a row, from the most parts to the fewest."""

    EACH = "each"
    """Every question, so that no part chooses."""
    INSIDE = "inside"
    """Whether the row is inside of all borders: the other rows, which are few, choose at each point."""
    NONE = "none"


class _Splitter:
    def __init__(self, loop: LoopVar, rows: Rows, scalars: int) -> None:
        self._loop = loop
        self._rows = rows
        self._scalars = scalars
        self._parts = 0
        self._make = ScalarBuilder()

    def split(self, statements: Sequence[Statement], known: IndexFacts) -> Parts | None:
        """The parts; None if they are too many or too large."""
        simplifier = Simplifier(self._make, known)
        current = tuple(map(simplifier.statement, statements))
        open_ones = [index for index in _questions(current, self._loop) if known.holds(index) is None]
        rows = [index for index in open_ones if self._loop not in index.variables()]
        if rows and self._rows is Rows.EACH:
            halves = self._halves(current, known, rows[0], rows[0])
            return None if halves is None else Choice((rows[0],), *halves)
        if rows and self._rows is Rows.INSIDE:
            return self._inside(current, known)
        for index in open_ones:
            at = _cut(index, self._loop)
            if at is not None:
                rises = _is_positive(index.coefficient(self._loop))
                after = as_index(self._loop) - at
                halves = self._halves(current, known, after, index if rises else _not(index))
                return None if halves is None else Cut(at, halves[1], halves[0])
        return self._part(current)

    def _part(self, statements: tuple[Statement, ...]) -> Part | None:
        self._parts += 1
        self._scalars -= _scalars(statements)
        return None if self._parts > MOST_PARTS or self._scalars < 0 else Part(statements)

    def _inside(self, statements: tuple[Statement, ...], known: IndexFacts) -> Parts | None:
        """Rows inside of all borders apart from the others; the others are one part."""
        nodes = postorder(root for statement in statements for root in roots_of(statement))
        guarded = [index for node in nodes if isinstance(node, Guarded) for index in questions(node)]
        borders = tuple(
            index
            for index in dict.fromkeys(guarded)
            if self._loop not in index.variables() and known.holds(index) is None
        )
        self._rows = Rows.NONE
        if not borders:
            return None
        for index in borders:
            known = known.and_also(index)
        yes = self.split(statements, known)
        no = None if yes is None else self._part(statements)
        return None if yes is None or no is None else Choice(borders, yes, no)

    def _halves(
        self, statements: Sequence[Statement], known: IndexFacts, *indices: Index
    ) -> tuple[Parts, Parts] | None:
        """The parts where ``indices``, which are of one sign everywhere, are not negative, and where they are."""
        holding = failing = known
        for index in dict.fromkeys(indices):
            holding, failing = holding.and_also(index), failing.and_also(_not(index))
        yes = self.split(statements, holding)
        no = None if yes is None else self.split(statements, failing)
        return None if yes is None or no is None else (yes, no)


def _not(index: Index) -> Index:
    return index * -1 + Index(-1)


def _is_positive(coefficient: object) -> bool:
    return isinstance(coefficient, int) and coefficient > 0


def _cut(index: Index, loop: LoopVar) -> Index | None:
    """The first point of ``loop`` at which the sign of ``index`` is another; None if a division would hide it."""
    coefficient = index.coefficient(loop)
    if not isinstance(coefficient, int) or coefficient == 0:
        return None
    rest = index - as_index(loop) * coefficient
    if loop in rest.variables():
        return None
    if coefficient in (1, -1):
        return rest * -1 if coefficient == 1 else rest + Index(1)
    if rest.terms:
        return None
    return Index(-(rest.const // coefficient) if coefficient > 0 else rest.const // -coefficient + 1)
