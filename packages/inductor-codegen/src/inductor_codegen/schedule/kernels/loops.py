"""Loops: their order by strides, the one to vectorise, and the merging of those that run through memory as
one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from fx_interface.errors import UnbackedSymbolError
from fx_interface.symbols import IntLike, ShapeEnv
from inductor_codegen.ir.index import Atom, Index, LoopVar, Quotient, Remainder, as_index
from inductor_codegen.lower.views import is_one


def hint(value: IntLike, env: ShapeEnv) -> int:
    """A size to reason about costs with: the one seen while compiling, or a guess for one that comes from
    data.
    """
    if isinstance(value, int):
        return value
    try:
        return env.hint(value)
    except (UnbackedSymbolError, KeyError):
        return 64


def vector_loop(loops: Sequence[LoopVar], accesses: Sequence[Index], env: ShapeEnv) -> LoopVar:
    """The loop along which most elements are neighbours in memory; the last one of equals.

    An access counts by the elements that it touches, so that a bias does not outweigh the tensor that it is added to.
    A loop of a few turns counts little, whatever its strides.
    """
    extents = {loop: hint(loop.extent, env) for loop in loops}
    scores = dict.fromkeys(loops, 0.0)
    for index in accesses:
        used = [loop for loop in dict.fromkeys(index.variables()) if loop in extents]
        weight = math.prod(extents[loop] for loop in used)
        for loop in used:
            scores[loop] += weight if is_one(index.coefficient(loop)) else -weight
    most = max((abs(score) for score in scores.values()), default=0.0)
    return max(reversed(loops), key=lambda loop: scores[loop] - (most if extents[loop] < 4 else 0.0))


def by_stride(loops: Sequence[LoopVar], index: Index, env: ShapeEnv) -> list[LoopVar]:
    """Loops in order of falling stride in ``index``; a loop that ``index`` lacks keeps its place before those
    that follow it.
    """
    strides = {loop: abs(hint(index.coefficient(loop), env)) for loop in loops}
    if any(stride == 0 for stride in strides.values()):
        return list(loops)
    return sorted(loops, key=lambda loop: -strides[loop])


def mergeable(outer: LoopVar, inner: LoopVar, indices: Iterable[Index]) -> bool:
    """Whether every index sees the two loops only as ``outer * inner.extent + inner``."""
    for index in indices:
        if index.coefficient(outer) != index.coefficient(inner) * inner.extent:
            return False
        for atom, _ in index.terms:
            if isinstance(atom, Quotient | Remainder) and not _unused(atom.numerator, outer, inner):
                return False
    return True


def _unused(index: Index, outer: LoopVar, inner: LoopVar) -> bool:
    return not any(loop in (outer, inner) for loop in index.variables())


def merge(loops: Sequence[LoopVar], indices: Sequence[Index]) -> tuple[list[LoopVar], dict[LoopVar, Index]]:
    """Neighbouring loops merged where possible; what each old loop variable that is gone is to be replaced
    by.

    The outer of two merged variables is replaced by 0 and the inner by the new one, as only their sum is ever
    used.
    """
    merged: list[LoopVar] = []
    replaced: dict[LoopVar, Index] = {}
    current = list(indices)
    for loop in loops:
        if merged and mergeable(merged[-1], loop, current):
            outer = merged.pop()
            new = LoopVar(loop.name, outer.extent * loop.extent)
            step = {outer: Index(0), loop: as_index(new)}
            current = [_replace(index, step) for index in current]
            replaced = {old: _replace(value, step) for old, value in replaced.items()} | step
            merged.append(new)
        else:
            merged.append(loop)
    return merged, replaced


def _replace(index: Index, values: dict[LoopVar, Index]) -> Index:
    total = Index(index.const)
    for atom, coefficient in index.terms:
        total = (
            total
            + (values[atom] if isinstance(atom, LoopVar) and atom in values else as_index(atom)) * coefficient
        )
    return total


def cuts(indices: Iterable[Index]) -> dict[str, IntLike]:
    """Loops to cut in two, each with the size of its inner part, so that quotients and remainders of it
    vanish.
    """
    found: dict[str, IntLike] = {}
    for index in indices:
        for atom in index.atoms():
            cut = _cut(atom)
            if cut is not None:
                found.setdefault(cut[0].name, cut[1])
    return found


def _cut(atom: Atom) -> tuple[LoopVar, IntLike] | None:
    if not isinstance(atom, Quotient | Remainder) or len(atom.numerator.terms) != 1:
        return None
    inner, coefficient = atom.numerator.terms[0]
    if not isinstance(inner, LoopVar) or not is_one(coefficient) or atom.numerator.const != 0:
        return None
    rest = inner.extent % atom.denominator
    if not (isinstance(rest, int) and rest == 0):
        return None
    return inner, atom.denominator
