"""Loops: their order by strides, the one to vectorise, and the merging of those that run through memory as
one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from fx_interface.errors import UnbackedSymbolError
from fx_interface.symbols import IntLike, ShapeEnv
from inductor_codegen.ir.index import Atom, Index, Loaded, LoopVar, Quotient, Remainder, as_index
from inductor_codegen.ir.scalar import loaded_scalars
from inductor_codegen.ir.traverse import indices_of, postorder
from inductor_codegen.lower.views import is_one

_A_LINE = 16
"""Elements that a GPU reads together at least."""
_FEW_TURNS = 8
_MOST_POINTS = 1024


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
    A loop of a few turns counts little, whatever its strides. A loop that names rows to look up takes memory further at
    each turn.
    """
    extents = {loop: hint(loop.extent, env) for loop in loops}
    scores = dict.fromkeys(loops, 0.0)
    for index in accesses:
        used = [loop for loop in dict.fromkeys(_moving(index)) if loop in extents]
        weight = math.prod(extents[loop] for loop in used)
        for loop in used:
            scores[loop] += weight if is_one(index.coefficient(loop)) else -weight
    most = max((abs(score) for score in scores.values()), default=0.0)
    return max(reversed(loops), key=lambda loop: scores[loop] - (most if extents[loop] < 4 else 0.0))


def across_rows(
    rows: Sequence[LoopVar], loops: Sequence[LoopVar], accesses: Sequence[Index], env: ShapeEnv
) -> LoopVar | None:
    """The loop of a reduction's ``rows`` along which an access to most elements runs through memory; None if there is
    none.

    Other accesses may run along the points (``x.mT.contiguous()`` beside ``x.sum()``). A GPU's program that holds a
    tile of both reads whole lines of memory either way; of single rows it would read a line for each element.
    """
    whole = math.prod(hint(loop.extent, env) for loop in loops)
    for index in accesses:
        reach = math.prod(hint(loop.extent, env) for loop in dict.fromkeys(_moving(index)) if loop in loops)
        for loop in reversed(rows):
            if is_one(index.coefficient(loop)) and hint(loop.extent, env) >= _A_LINE and 2 * reach > whole:
                return loop
    return None


def _moving(index: Index) -> Iterator[LoopVar]:
    """The loops that decide which element an index names, through numbers from data as well."""
    yield from index.variables()
    for node in postorder(loaded_scalars(index)):
        for inside in indices_of(node):
            yield from inside.variables()


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
            current = [replace_loops(index, step) for index in current]
            replaced = {old: replace_loops(value, step) for old, value in replaced.items()} | step
            merged.append(new)
        else:
            merged.append(loop)
    return merged, replaced


def join_short_rows(
    loops: Sequence[LoopVar], indices: Iterable[Index], repeated: int
) -> tuple[list[LoopVar], dict[LoopVar, Index]]:
    """A last loop of a few turns and the one around it as one that fills vectors, if memory runs through both; what
    each of them is to be replaced by.

        for (g < 8) for (c < 4)  out[4*g + c] = x[4*g + c] * scale[g]   ->   for (k < 32)  out[k] = x[k] * scale[k / 4]

    Only where other elements than those of memory that runs through are the same for several rows, which then lay them
    out once (``codegen.cpp.analysis.repeated``): ``repeated`` says along how many of the loops further out they have to
    be the same, none where the rows are lanes, which lay them out before the loops that reduce.
    """
    if not _are_short_rows(loops, repeated):
        return list(loops), {}
    outer, inner = loops[-2:]
    around = loops[-2 - repeated : -2]
    both = []
    for index in indices:
        atoms = list(index.atoms())
        seen = [loop for loop in (outer, inner) if loop in atoms]
        plain = all(atoms.count(loop) == 1 and index.coefficient(loop) != 0 for loop in seen)
        if (
            not plain
            or any(isinstance(atom, Loaded) for atom in atoms)
            or (len(seen) == 1 and any(loop in atoms for loop in around))
        ):
            return list(loops), {}
        if len(seen) == 2:
            both.append(index)
    if not both or not mergeable(outer, inner, both):
        return list(loops), {}
    joined = LoopVar(inner.name, outer.extent * inner.extent)
    position = as_index(joined)
    parts = {
        outer: as_index(Quotient(position, inner.extent)),
        inner: as_index(Remainder(position, inner.extent)),
    }
    return [*loops[:-2], joined], parts


def _are_short_rows(loops: Sequence[LoopVar], repeated: int) -> bool:
    if len(loops) < 2 + repeated:
        return False
    turns, points = loops[-1].extent, loops[-2].extent * loops[-1].extent
    return (
        isinstance(turns, int) and isinstance(points, int) and turns <= _FEW_TURNS and points <= _MOST_POINTS
    )


def replace_loops(index: Index, values: Mapping[LoopVar, Index]) -> Index:
    """``index`` with loops replaced, also in quotients and remainders of them."""
    total = Index(index.const)
    for atom, coefficient in index.terms:
        match atom:
            case LoopVar():
                new = values.get(atom, as_index(atom))
            case Quotient(numerator, denominator):
                new = as_index(Quotient(replace_loops(numerator, values), denominator))
            case Remainder(numerator, denominator):
                new = as_index(Remainder(replace_loops(numerator, values), denominator))
            case _:
                new = as_index(atom)
        total = total + new * coefficient
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
