"""Short rows that a processor computes side by side.

    for (i < 100000) for (c < 10)  out[i, c] = exp(x[i, c] - largest[i])

A row of 10 floats is one short vector and two numbers, and for each of these a function of the C library takes as long
as for a vector; so does one of a row's total. Side by side 16 rows fill each vector, and what they read is apart in
memory, which takes less time than the functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fx_interface.symbols import ShapeEnv
from inductor_codegen.ir.index import Index, LoopVar
from inductor_codegen.ir.kernel import Accumulate, Statement, Store, extent_product
from inductor_codegen.ir.scalar import Apply
from inductor_codegen.ir.traverse import postorder, roots_of
from inductor_codegen.schedule.fusion.cost import FUNCTIONS
from inductor_codegen.schedule.kernels.loops import hint, merge

_LONGEST: Final = 32
"""Elements of a row: its functions outweigh what is apart in memory."""
_VECTOR: Final = 8
"""Elements that rows are computed by: rows of whole vectors leave none over."""
_LINE: Final = 16
"""Elements of a line of memory: side by side, rows of whole lines compete for the same places of a cache."""
_ROWS: Final = 256
"""Rows side by side that pay for their loops."""
_POINTS: Final = 1 << 14
"""Elements that pay for the time that such a kernel takes to compile, twice that of the other."""


def are_side_by_side(
    inner: Sequence[LoopVar],
    outer: Sequence[LoopVar],
    points: Sequence[Store | Accumulate],
    rows: Sequence[Store],
    indices: Sequence[Index],
    env: ShapeEnv,
) -> bool:
    """Whether rows of ``inner`` loops are vectors of the last of the ``outer`` ones, which are sorted by strides.
    ``points``: what is computed for each element, ``rows``: for each row."""
    length = extent_product(tuple(inner))
    if not outer or not isinstance(length, int) or length > _LONGEST:
        return False
    if any(isinstance(item, Accumulate) and item.position is not None for item in points):
        return False
    if length % (_LINE if _call(rows) else _VECTOR) == 0 or not _call([*rows, *points]):
        return False
    together = hint(merge(outer, indices)[0][-1].extent, env)
    return together >= _ROWS and together * length >= _POINTS


def _call(statements: Iterable[Statement]) -> bool:
    nodes = postorder(root for statement in statements for root in roots_of(statement))
    return any(isinstance(node, Apply) and node.op in FUNCTIONS for node in nodes)
