"""Tiles: pointwise kernels that read or write one buffer along one loop and another along a second loop.

    out[4096*i0 + i1] = in[i0 + 4096*i1]        rows of i0, points of i1: a block is a tile of both

Taken in blocks along one loop alone, such a kernel uses a fraction of every piece of memory that it touches.
"""

from __future__ import annotations

from collections.abc import Iterator

from inductor_codegen.ir.index import Index, LoopVar
from inductor_codegen.ir.kernel import Kernel, Store
from inductor_codegen.ir.scalar import Load
from inductor_codegen.ir.traverse import postorder, roots_of, statements_of

_LEAST, _MOST = 8, 1 << 21
"""How many points each of the two loops has, so that a tile is worth it and the grid is not too large."""
_SHORT = 16
"""A loop below this is one of rows: these follow each other in a block from one turn of a loop further out to the next,
and so do channels in memory that a group norm has cut into groups."""


def tile_of(kernel: Kernel) -> tuple[LoopVar, LoopVar] | None:
    """The loop of a tile's rows and that of its points, for a kernel without reductions; None without a need."""
    loops = [loop for loop in (*kernel.outer, *kernel.inner) if _fits(loop)]
    along = next((loop for index in _stored(kernel) for loop in loops if _runs_along(index, loop)), None)
    if along is None:
        return None
    for index in (*_loaded(kernel), *_stored(kernel)):
        if index.terms and not _runs_along(index, along) and along in index.variables():
            across = next((loop for loop in loops if _runs_along(index, loop)), None)
            if across is not None:
                return (along, across) if _is_short(along) and not _is_short(across) else (across, along)
    return None


def _fits(loop: LoopVar) -> bool:
    return isinstance(loop.extent, int) and _LEAST <= loop.extent <= _MOST


def _is_short(loop: LoopVar) -> bool:
    return isinstance(loop.extent, int) and loop.extent < _SHORT


def _runs_along(index: Index, loop: LoopVar) -> bool:
    """Whether the next point of ``loop`` is the next element."""
    coefficient = index.coefficient(loop)
    return isinstance(coefficient, int) and coefficient == 1


def _stored(kernel: Kernel) -> Iterator[Index]:
    return (node.index for node in statements_of(kernel.passes) if isinstance(node, Store))


def _loaded(kernel: Kernel) -> Iterator[Index]:
    roots = (root for statement in statements_of(kernel.passes) for root in roots_of(statement))
    return (node.index for node in postorder(roots) if isinstance(node, Load))
