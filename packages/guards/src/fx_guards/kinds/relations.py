"""Guards between several values: same object, distinct objects, relations of sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, ClassVar

from fx_guards.kinds.base import GuardRecord, guard_kind, short
from fx_interface.errors import UserLocation
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.source import Source
from fx_interface.symbols import Expr, Range, Relation, ShapeEnv, Symbol, symbol


@guard_kind
@dataclass(frozen=True, slots=True)
class SameObject(GuardRecord):
    """The values of ``source`` and ``other`` are one object."""

    kind: ClassVar[str] = "same_object"
    other: Source

    @property
    def sources(self) -> tuple[Source, ...]:
        return (self.source, self.other)

    def holds(self, value: Any) -> bool:
        return value[0] is value[1]

    def explain(self, value: Any) -> str:
        return f"expected the same object as {self.other}, got {short(value[0])} and {short(value[1])}"


@guard_kind
@dataclass(frozen=True, slots=True)
class DistinctObjects(GuardRecord):
    """No two of the values (``source`` and ``others``) are one object."""

    kind: ClassVar[str] = "distinct_objects"
    others: tuple[Source, ...]

    @property
    def sources(self) -> tuple[Source, ...]:
        return (self.source, *self.others)

    def holds(self, value: Any) -> bool:
        return len(set(map(id, value))) == len(value)

    def explain(self, value: Any) -> str:
        first: dict[int, Source] = {}
        for source, item in zip(self.sources, value, strict=True):
            earlier = first.setdefault(id(item), source)
            if earlier is not source:
                return f"expected distinct objects, but {earlier} and {source} are the same one"
        return "expected distinct objects"


@guard_kind
@dataclass(frozen=True, slots=True)
class ShapeRelations(GuardRecord):
    """Relations and ranges of symbolic sizes; ``bindings`` say where each symbol's value is read.

    A symbol bound more than once must read the same integer everywhere. A value that is not exactly an int fails.
    """

    kind: ClassVar[str] = "shape_relations"
    takes_tuple: ClassVar[bool] = True
    symbols: tuple[Symbol, ...]
    others: tuple[Source, ...]
    relations: tuple[Relation, ...]
    ranges: tuple[tuple[Symbol, Range], ...] = ()
    lines: tuple[UserLocation | None, ...] = field(default=(), compare=False, repr=False)

    @property
    def sources(self) -> tuple[Source, ...]:
        return (self.source, *self.others)

    def holds(self, value: Any) -> bool:
        return self.first_broken(value) is None

    def explain(self, value: Any) -> str:
        return self.first_broken(value) or "holds"

    def first_broken(self, value: Any) -> str | None:
        """The first range or relation that these values break, as text, or None."""
        known: dict[Symbol, int] = {}
        for atom, source, item in zip(self.symbols, self.sources, value, strict=True):
            if type(item) is not int:
                return f"{source} ({atom}) is no integer: {short(item)}"
            if known.setdefault(atom, item) != item:
                return f"{source} is {item}, but {atom} is {known[atom]} elsewhere"
        for atom, span in self.ranges:
            if not _inside(known[atom], span):
                return f"{self._name(atom)} is {known[atom]}, outside {_span(span)}"
        for index, relation in enumerate(self.relations):
            if not _relation_holds(relation, known):
                where = self.lines[index] if index < len(self.lines) else None
                needed = f" (needed at {where})" if where else ""
                return f"{relation} is false for {self._values(relation, known)}{needed}"
        return None

    def _name(self, atom: Symbol) -> str:
        return f"{self.sources[self.symbols.index(atom)]} ({atom})"

    def _values(self, relation: Relation, known: Mapping[Symbol, int]) -> str:
        atoms = sorted(relation.symbols, key=lambda a: a.name)
        return ", ".join(f"{self._name(atom)} = {known.get(atom)}" for atom in atoms)


def shape_relations(
    env: ShapeEnv,
    bindings: Iterable[tuple[Symbol, Source]] = (),
    derived: Iterable[tuple[Expr, Source]] = (),
) -> ShapeRelations | None:
    """The guard for all that a compilation relied on about sizes, or None if it relied on nothing.

    ``bindings`` adds to the sources that the environment knows: more places where a symbol is read; ``derived`` are
    places where the value of an expression is read. A relation over a symbol that has no source at all (one that
    comes from data) cannot be guarded and is left out.
    """
    bound = [(atom, info.source) for atom, info in env.symbols.items() if info.source is not None]
    bound += [pair for pair in bindings if pair not in bound]
    relied = [(guard.relation, guard.where) for guard in env.guards]
    for number, (value, source) in enumerate(derived):
        atom = value.as_symbol
        if atom is None:
            atom = Symbol(f"derived{number}")
            relied.append((Relation("==", symbol(atom.name), value), None))
        bound.append((atom, source))
    if not bound:
        return None
    atoms = {atom for atom, _ in bound}
    kept = [(relation, where) for relation, where in relied if relation.symbols <= atoms]
    ranges = tuple(
        (atom, info.range)
        for atom, info in env.symbols.items()
        if atom in atoms and (info.range.low is not None or info.range.high is not None)
    )
    symbols, sources = zip(*bound, strict=True)
    return ShapeRelations(
        sources[0],
        symbols,
        sources[1:],
        tuple(relation for relation, _ in kept),
        ranges,
        tuple(where for _, where in kept),
    )


def _inside(value: int, span: Range) -> bool:
    return (span.low is None or value >= span.low) and (span.high is None or value <= span.high)


def _span(span: Range) -> str:
    low = "-inf" if span.low is None else span.low
    high = "inf" if span.high is None else span.high
    return f"[{low}, {high}]"


def _relation_holds(relation: Relation, known: Mapping[Symbol, int]) -> bool:
    try:
        return relation.holds(known)
    except (ZeroDivisionError, KeyError):
        return False
