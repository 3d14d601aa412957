"""Bounds of loops as C++ text, and what their text tells."""

from __future__ import annotations

from collections.abc import Sequence

from inductor_codegen.codegen.cpp.analysis.index_set_splitting import SHORTEST
from inductor_codegen.ir.index import LoopVar


def length(begin: str, end: str) -> int | None:
    """How many points there are between two bounds, if their text tells."""
    if begin.isdigit() and end.isdigit():
        return int(end) - int(begin)
    return int(end.removeprefix("part + ")) if begin == "part" and end.startswith("part + ") else None


def is_short(begin: str, end: str) -> bool:
    """Whether a loop has too few points to be worth a vector."""
    return begin.isdigit() and end.isdigit() and int(end) - int(begin) < SHORTEST


def together(loops: Sequence[LoopVar]) -> int:
    """How many of the outer loops are shared as one: as many as make 64 pieces."""
    pieces, count = 1, 0
    for loop in loops:
        count += 1
        pieces *= loop.extent if isinstance(loop.extent, int) else 64
        if pieces >= 64:
            break
    return count
