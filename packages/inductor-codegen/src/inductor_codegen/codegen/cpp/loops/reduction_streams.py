"""Sums of several streams: each turn of a loop takes four points, whose terms are added to each other first.

    for (q = 0; q < n; ++q) sum += x[q];                          n additions, each waits for the one before
    for (q = 0; q < n / 4; ++q)
      sum += (x[q] + x[n/4 + q]) + (x[2*n/4 + q] + x[3*n/4 + q]);   a quarter of that, and of its rounding errors

A sum of n terms, one after the other, has an error that grows with n; the blocks of pairwise summation keep it small
(N. J. Higham, The accuracy of floating point summation, 1993). Long sums are cut into parts whose totals are added in
double; inside of a part the additions that follow each other in one lane of a vector are at most some 16 here, as in
torch's own kernels. A loop whose points cost more, or that reads more than one row of memory, is slower by streams (it
would need an address for each) and compiles four times as long: its parts are shorter instead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from inductor_codegen.codegen.cpp.text.reductions import Accumulator
from inductor_codegen.ir.scalar import Apply, Guarded, Load, Scalar

STREAMS = 4
"""Points of a turn."""
LANES = 16
"""Turns that fill a vector of the widest kind."""
MOST_OPERATIONS = 4
"""Operations at a point from which on there are no streams."""
MOST_READS = 1
"""Loads at a point of a row above which there are no streams: gcc keeps an address for each load of a turn."""


def may_stream(accumulators: Sequence[Accumulator], nodes: Collection[Scalar], *, along_row: bool) -> bool:
    """Whether a loop that reduces should take several points at a turn; ``nodes`` are computed at each."""
    if not accumulators or not all(accumulator.rounds for accumulator in accumulators):
        return False
    reads = sum(isinstance(node, Load) for node in nodes)
    if reads > MOST_READS and (along_row or len(accumulators) > 1):
        return False
    operations = 0
    for node in nodes:
        if isinstance(node, Guarded):
            return False
        operations += isinstance(node, Apply)
    return operations <= MOST_OPERATIONS


def turns_of(points: int) -> int:
    """The turns of a loop of ``points`` points. They fill vectors: what is left of a stream would be computed number by
    number in each of them."""
    turns = points // STREAMS
    return turns // LANES * LANES or turns


def term(accumulator: Accumulator, stream: int) -> str:
    """The variable of what a stream adds."""
    return f"u{accumulator.item.accumulator}_{stream}"


def declarations(accumulators: Iterable[Accumulator]) -> list[str]:
    """Definitions of the terms of all streams."""
    return [f"{a.type} {', '.join(term(a, stream) for stream in range(STREAMS))};" for a in accumulators]


def additions(accumulators: Iterable[Accumulator], names: dict[int, str], lane: str = "") -> list[str]:
    """Statements that add the terms of a turn, in pairs, to the sums."""
    lines = []
    for a in accumulators:
        one, two, three, four = (term(a, stream) for stream in range(STREAMS))
        name = names.get(a.item.accumulator, a.name)
        lines.append(f"{name}{lane} += ({one} + {two}) + ({three} + {four});")
    return lines
