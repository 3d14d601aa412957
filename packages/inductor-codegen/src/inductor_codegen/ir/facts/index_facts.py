"""What is known about indices in one part of the loops, and scalars simplified by it.

3 <= i1 and i1 < 99:   if(0 <= i1 + -3 < 96; in[i1 + -3]; 0)   ->   in[i1 + -3]
                       minimum(i1 + -3, 96)                    ->   i1 + -3
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import torch

from fx_interface.symbols import IntLike, ShapeEnv
from inductor_codegen.ir.facts.size_bounds import is_natural_size
from inductor_codegen.ir.index import Atom, Index, Loaded, LoopVar, as_index
from inductor_codegen.ir.kernel import Pass
from inductor_codegen.ir.scalar import Apply, Constant, Guard, Guarded, IndexValue, Scalar, ScalarBuilder
from inductor_codegen.ir.traverse import Rebuilder, postorder, roots_of, statements_of

_SMALL = 1 << 31
"""Numbers below, added to positions, stay far from the end of 64 bits."""


class IndexFacts:
    """Facts: indices that are not negative, and what symbolic sizes are at ``least``. Immutable."""

    __slots__ = ("_facts", "_least")

    def __init__(self, facts: tuple[Index, ...] = (), least: Mapping[str, int] | None = None) -> None:
        self._facts = facts
        self._least: Mapping[str, int] = least or {}

    def and_also(self, fact: Index) -> IndexFacts:
        """With ``fact >= 0`` too."""
        return IndexFacts((*self._facts, fact), self._least)

    def holds(self, index: Index) -> bool | None:
        """Whether ``index >= 0``; None where the facts leave it open."""
        if self._implies(index):
            return True
        return False if self._implies(_not(index)) else None

    def _implies(self, index: Index) -> bool:
        return self._is_natural(index) or any(self._is_natural(index - fact) for fact in self._facts)

    def _is_natural(self, index: Index) -> bool:
        """Whether an index is not negative anywhere in the loops."""
        low: IntLike = index.const
        for atom, coefficient in index.terms:
            if not isinstance(atom, LoopVar) or not isinstance(coefficient, int):
                return False
            low = low + (0 if coefficient > 0 else (atom.extent - 1) * coefficient)
        return low >= 0 if isinstance(low, int) else is_natural_size(low, self._least)


def _not(index: Index) -> Index:
    """What is not negative where ``index`` is."""
    return index * -1 + Index(-1)


def questions(node: Scalar) -> Iterator[Index]:
    """Indices of which ``node`` depends on the sign alone."""
    match node:
        case Guarded(guards=guards):
            for guard in guards:
                yield from _bounds_of(guard)
        case Apply("wrap_index" | "check_index" | "abs", (chosen, *rest)):
            index = position(chosen)
            if index is not None:
                yield index
                size = position(rest[0]) if rest else None
                yield from () if size is None else (index - size, index + size)
        case Apply(op, (one, other)) if op in _DIFFERENCES:
            left, right = position(one), position(other)
            if left is not None and right is not None and (left.terms or right.terms):
                yield from _DIFFERENCES[op](left - right)


def asks(passes: Iterable[Pass]) -> bool:
    """Whether anything in a kernel depends on the sign of an index."""
    nodes = postorder(root for statement in statements_of(passes) for root in roots_of(statement))
    return any(True for node in nodes for _ in questions(node))


_DIFFERENCES: dict[str, Callable[[Index], tuple[Index, ...]]] = {
    "ge": lambda d: (d,),
    "gt": lambda d: (d + Index(-1),),
    "le": lambda d: (d * -1,),
    "lt": lambda d: (d * -1 + Index(-1),),
    "eq": lambda d: (d, d + Index(-1)),
    "ne": lambda d: (d, d + Index(-1)),
    "maximum": lambda d: (d,),
    "minimum": lambda d: (d,),
}


def _bounds_of(guard: Guard) -> Iterator[Index]:
    if guard.low is not None:
        yield guard.index - Index(guard.low)
    if guard.high is not None:
        yield Index(guard.high - 1) - guard.index


def position(value: Scalar) -> Index | None:
    """An int64 as an index that no data tell; None if it is none, or a number far from any size."""
    if value.dtype != torch.int64:
        return None
    if isinstance(value, Constant):
        return Index(int(value.value)) if abs(value.value) < _SMALL else None
    if not isinstance(value, IndexValue):
        return None
    numbers = (value.index.const, *(coefficient for _, coefficient in value.index.terms))
    known = not any(isinstance(atom, Loaded) for atom in value.index.atoms())
    return value.index if known and all(not isinstance(n, int) or abs(n) < _SMALL for n in numbers) else None


class Simplifier(Rebuilder):
    """Copies statements, with what ``known`` settles settled."""

    def __init__(self, make: ScalarBuilder, known: IndexFacts) -> None:
        super().__init__(make, ShapeEnv())
        self._make = make
        self._known = known

    def _atom(self, atom: Atom) -> Index | None:
        if isinstance(atom, Loaded):
            scalar = self.scalar(atom.scalar)
            index = position(scalar)
            return as_index(Loaded(scalar)) if index is None else index
        return None

    def _node(self, node: Scalar) -> Scalar:
        new = super()._node(node)
        match new:
            case Guarded(guards, body, other):
                return self._guarded(guards, body, other)
            case Apply(op, args):
                settled = self._applied(new, op, args)
                return new if settled is None or settled.dtype != new.dtype else settled
        return new

    def _guarded(self, guards: tuple[Guard, ...], body: Scalar, other: Scalar) -> Scalar:
        left = []
        for guard in guards:
            answers = [self._known.holds(index) for index in _bounds_of(guard)]
            if False in answers:
                return other
            if None in answers:
                left.append(guard)
        return self._make.guarded(tuple(left), body, other)

    def _applied(self, node: Apply, op: str, args: tuple[Scalar, ...]) -> Scalar | None:
        if op == "where" and isinstance(args[0], Constant):
            return args[1] if args[0].value else args[2]
        if op == "convert_dtype" and isinstance(args[0], Constant):
            return self._make.convert(args[0], node.dtype)
        if op in ("bitwise_and", "bitwise_or", "logical_not") and args[0].dtype == torch.bool:
            return self._logic(op, args)
        places = [position(arg) for arg in args]
        indices = [place for place in places if place is not None]
        return self._on_positions(node, op, args, indices) if len(indices) == len(args) else None

    def _logic(self, op: str, args: tuple[Scalar, ...]) -> Scalar | None:
        if op == "logical_not":
            one = args[0]
            return self._truth(not one.value) if isinstance(one, Constant) else None
        for value, other in (args, args[::-1]):
            if isinstance(value, Constant):
                return other if bool(value.value) is (op == "bitwise_and") else value
        return None

    def _on_positions(
        self, node: Apply, op: str, args: tuple[Scalar, ...], indices: list[Index]
    ) -> Scalar | None:
        one = indices[0]
        match op:
            case "add":
                return self._place(one + indices[1])
            case "sub":
                return self._place(one - indices[1])
            case "neg":
                return self._place(one * -1)
            case "abs":
                positive = self._known.holds(one)
                return None if positive is None else self._place(one if positive else one * -1)
            case "maximum" | "minimum":
                larger = self._known.holds(one - indices[1])
                return None if larger is None else args[0 if larger is (op == "maximum") else 1]
            case "wrap_index" | "check_index":
                return self._wrapped(one, indices[1], op == "wrap_index")
        return self._compared(op, one - indices[1]) if op in _DIFFERENCES else None

    def _compared(self, op: str, difference: Index) -> Scalar | None:
        answers = [self._known.holds(index) for index in _DIFFERENCES[op](difference)]
        if op not in ("eq", "ne"):
            return None if answers[0] is None else self._truth(answers[0])
        at_least, above = answers
        if at_least is False or above is True:
            return self._truth(op == "ne")
        return self._truth(op == "eq") if at_least is True and above is False else None

    def _wrapped(self, chosen: Index, size: Index, wraps: bool) -> Scalar | None:
        holds = self._known.holds
        if holds(chosen) is True and holds(chosen - size) is False:
            return self._place(chosen)
        if wraps and holds(chosen) is False and holds(chosen + size) is True:
            return self._place(chosen + size)
        return None

    def _place(self, index: Index) -> Scalar:
        return self._make.index_value(index, torch.int64)

    def _truth(self, value: bool) -> Scalar:
        return self._make.constant(value, torch.bool)
