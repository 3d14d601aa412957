"""A kernel's own names for its sizes, so that equal kernels over different sizes of a program are one.

    attention over s0, s2 and attention over s0, s1  ->  both a kernel of s0, s1, called with different sizes

Only names change, so nothing is simplified again: what was known of a size in the program is already used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fx_interface.symbols import Expr, IntLike, ShapeEnv, Symbol, substitute, symbol
from inductor_codegen.ir.index import Atom, Index, Loaded, LoopVar, Quotient, Remainder
from inductor_codegen.ir.kernel import Pass, Store
from inductor_codegen.ir.scalar import Guard, Guarded, Scalar, ScalarBuilder
from inductor_codegen.ir.traverse import (
    Rebuilder,
    indices_of,
    postorder,
    roots_of,
    statement_indices,
    statements_of,
)


class SizeRenamer(Rebuilder):
    """Gives the ``sizes``, in their order, the names s0, s1, and so on."""

    def __init__(self, make: ScalarBuilder, env: ShapeEnv, sizes: Sequence[str]) -> None:
        super().__init__(make, env)
        self._make = make
        self.names = [f"s{position}" for position in range(len(sizes))]
        self._new: dict[Symbol, IntLike] = {
            Symbol(old): symbol(new) for old, new in zip(sizes, self.names, strict=True)
        }
        self._indices: dict[Index, Index] = {}

    def loop(self, loop: LoopVar) -> LoopVar:
        """A loop with its extent renamed."""
        return LoopVar(loop.name, self._size(loop.extent))

    def run(self, step: Pass) -> Pass:
        """A pass with all its sizes renamed."""
        row = tuple(Store(s.buffer, self.index(s.index), self.scalar(s.value)) for s in step.row)
        return Pass(tuple(map(self.statement, step.points)), row)

    def index(self, index: Index) -> Index:
        """An index with its sizes renamed, in the same order."""
        found = self._indices.get(index)
        if found is None:
            terms = tuple((self._renamed(atom), self._size(factor)) for atom, factor in index.terms)
            found = self._indices[index] = Index(self._size(index.const), terms)
        return found

    def _size(self, value: IntLike) -> IntLike:
        return substitute(value, self._new)

    def _bound(self, value: IntLike | None) -> IntLike | None:
        return None if value is None else self._size(value)

    def _renamed(self, atom: Atom) -> Atom:
        match atom:
            case LoopVar():
                return self.loop(atom)
            case Quotient(numerator, denominator):
                return Quotient(self.index(numerator), self._size(denominator))
            case Remainder(numerator, denominator):
                return Remainder(self.index(numerator), self._size(denominator))
            case Loaded(scalar):
                return Loaded(self.scalar(scalar))

    def _node(self, node: Scalar) -> Scalar:
        if isinstance(node, Guarded):
            guards = tuple(
                Guard(self.index(g.index), self._bound(g.low), self._bound(g.high)) for g in node.guards
            )
            return self._make.guarded(guards, self._done[node.body], self._done[node.other])
        return super()._node(node)


def symbols_of(passes: tuple[Pass, ...], loops: tuple[LoopVar, ...]) -> set[str]:
    """Names of all size symbols that the kernel mentions."""
    found: set[str] = set()

    def note(values: Iterable[IntLike | None]) -> None:
        for value in values:
            if isinstance(value, Expr):
                found.update(atom.name for atom in value.symbols)

    def note_index(index: Index) -> None:
        note((index.const, *(coefficient for _, coefficient in index.terms)))
        for atom, _ in index.terms:
            if isinstance(atom, Quotient | Remainder):
                note([atom.denominator])
                note_index(atom.numerator)

    note(loop.extent for loop in loops)
    for statement in statements_of(passes):
        for index in statement_indices(statement):
            note_index(index)
        for node in postorder(roots_of(statement)):
            for index in indices_of(node):
                note_index(index)
            if isinstance(node, Guarded):
                note(bound for guard in node.guards for bound in (guard.low, guard.high))
    return found
