"""How many terms of sums over neighbouring rows are added in float32 before their total joins the others, in double.

for i in range(1500):  p[lane] += x[i, lane]                        each 16 turns: a[lane] += p[lane], p[lane] = 0
for i in range(2):
    for j in range(1500):  p[lane] += x[i, j, lane]                 parts end inside of the inner loop too
"""

from __future__ import annotations

from collections.abc import Sequence

from inductor_codegen.codegen.cpp.loops.reduction_streams import STREAMS
from inductor_codegen.ir.index import LoopVar
from inductor_codegen.ir.kernel import extent_product

PART = 64
"""Terms of a sum that are added up before their total joins the others, where each turn takes several."""
SHORT_PART = 16
"""The same where each turn takes one: torch's own kernels add up as many."""
FEW = 32
"""Terms up to which each turn takes one, which is compiled sooner."""


def are_few(inner: Sequence[LoopVar]) -> bool:
    """Whether the points of the inner loops are so few that each turn takes one."""
    points, last = extent_product(tuple(inner)), inner[-1].extent if inner else 1
    return (isinstance(points, int) and points <= FEW) or (isinstance(last, int) and last < STREAMS)


def is_long(inner: Sequence[LoopVar], terms: int) -> bool:
    """Whether one turn around these loops may be many more points than a part of ``terms``: parts end inside of it."""
    points = extent_product(tuple(inner))
    return bool(inner) and (not isinstance(points, int) or points > terms + terms // 2)


def part_of(inner: Sequence[LoopVar], terms: int) -> int:
    """Turns of the first inner loop that make up a part of ``terms``; 0 if all its turns are not many more."""
    if not inner:
        return 0
    below = extent_product(tuple(inner[1:]))
    turns = max(1, terms // below) if isinstance(below, int) and below else 1
    extent = inner[0].extent
    few = isinstance(extent, int) and extent <= turns + turns // 2
    return 0 if few and not is_long(inner[1:], terms) else turns
