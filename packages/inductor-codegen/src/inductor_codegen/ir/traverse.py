"""Walking and rebuilding scalar graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from fx_interface.symbols import ShapeEnv
from inductor_codegen.ir.index import Atom, Index, Loaded, as_index, rewrite
from inductor_codegen.ir.kernel import Accumulate, Keep, Kernel, Pass, Statement, Store
from inductor_codegen.ir.scalar import (
    Apply,
    Guard,
    Guarded,
    IndexValue,
    Load,
    Scalar,
    ScalarBuilder,
    operands,
)


def postorder(roots: Iterable[Scalar]) -> list[Scalar]:
    """Every scalar that ``roots`` are computed from, each once, operands first."""
    found: dict[Scalar, None] = {}
    pending: list[tuple[Scalar, bool]] = [(root, False) for root in reversed(list(roots))]
    while pending:
        node, expanded = pending.pop()
        if expanded:
            found[node] = None
        elif node not in found:
            pending.append((node, True))
            pending.extend((operand, False) for operand in reversed(operands(node)) if operand not in found)
    return list(found)


def indices_of(node: Scalar) -> Iterator[Index]:
    """The index expressions directly in ``node``."""
    match node:
        case Load(index=index) | IndexValue(index=index):
            yield index
        case Guarded(guards=guards):
            for guard in guards:
                yield guard.index


def statements_of(passes: Iterable[Pass]) -> Iterator[Statement]:
    """All statements in order."""
    for step in passes:
        yield from step.points
        yield from step.row


def roots_of(statement: Statement) -> Iterator[Scalar]:
    """The scalars that a statement uses, its index's loaded values included."""
    yield statement.value
    for index in statement_indices(statement):
        if index.terms:
            yield from (atom.scalar for atom in index.atoms() if isinstance(atom, Loaded))


def statement_indices(statement: Statement) -> Iterator[Index]:
    """The index expressions directly in a statement."""
    match statement:
        case Store(index=index):
            yield index
        case Accumulate(position=position):
            if position is not None:
                yield position


class Rebuilder:
    """Copies scalar graphs into a builder with leaves or atoms replaced. Each node is rebuilt once."""

    def __init__(
        self,
        builder: ScalarBuilder,
        env: ShapeEnv,
        leaf: Callable[[Scalar], Scalar | None] = lambda node: None,
        atom: Callable[[Atom], Index | None] = lambda atom: None,
    ) -> None:
        self._builder = builder
        self._env = env
        self._leaf = leaf
        self._replace_atom = atom
        self._done: dict[Scalar, Scalar] = {}

    def scalar(self, root: Scalar) -> Scalar:
        """``root`` rebuilt."""
        done = self._done
        for node in postorder([root]) if root not in done else ():
            if node not in done:
                done[node] = self._leaf(node) or self._node(node)
        return done[root]

    def index(self, index: Index) -> Index:
        """``index`` rebuilt."""
        return rewrite(index, self._atom, self._env) if index.terms else index

    def statement(self, statement: Statement) -> Statement:
        """A statement rebuilt."""
        match statement:
            case Store(buffer, index, value):
                return Store(buffer, self.index(index), self.scalar(value))
            case Accumulate(accumulator, kind, value, dtype, position):
                moved = None if position is None else self.index(position)
                return Accumulate(accumulator, kind, self.scalar(value), dtype, moved)
            case Keep(slot, value):
                return Keep(slot, self.scalar(value))

    def _atom(self, atom: Atom) -> Index | None:
        if isinstance(atom, Loaded):
            return as_index(Loaded(self.scalar(atom.scalar)))
        return self._replace_atom(atom)

    def _node(self, node: Scalar) -> Scalar:
        make, done = self._builder, self._done
        match node:
            case Apply(op, args, dtype):
                return make.apply(op, tuple(done[arg] for arg in args), dtype)
            case Load(buffer, index, dtype):
                return make.load(buffer, self.index(index), dtype)
            case IndexValue(index, dtype):
                return make.index_value(self.index(index), dtype)
            case Guarded(guards, body, other):
                moved = tuple(Guard(self.index(g.index), g.low, g.high) for g in guards)
                return make.guarded(moved, done[body], done[other])
        return node


def with_statements(kernel: Kernel, moved: Callable[[Statement], Statement]) -> Kernel:
    """The kernel with other statements in their places; a store stays one."""

    def stored(item: Store) -> Store:
        made = moved(item)
        assert isinstance(made, Store)
        return made

    passes = tuple(
        Pass(tuple(map(moved, step.points)), tuple(map(stored, step.row))) for step in kernel.passes
    )
    return replace(kernel, passes=passes)
