"""Strips: pointwise kernels that read several numbers of each row, whose programs take points of one row.

    out[i0, i1] = exp(x[i0, i1] - top[i0]) * scale[i0]        a program loads top and scale once

Taken as points of all rows together, each point divides its position by a row's length and loads the row's numbers.
"""

from __future__ import annotations

from inductor_codegen.ir.index import LoopVar
from inductor_codegen.ir.kernel import Kernel
from inductor_codegen.ir.scalar import Load
from inductor_codegen.ir.traverse import postorder, roots_of, statements_of

STRIP = 1024
"""Points of a row that a program takes, of several rows where these are shorter."""
_SHORTEST, _LONGEST = 512, 1 << 25
_FEWEST_NUMBERS = 2
_LEAST_FULL = 0.8
"""How much of the strips must be points."""


def strip_loop(kernel: Kernel) -> LoopVar | None:
    """The loop along a row, for a kernel without reductions; None where it is not taken in strips."""
    loops = (*kernel.outer, *kernel.inner)
    if len(loops) < 2 or not _is_long(loops[-1]):
        return None
    along, others = loops[-1], frozenset(loops[:-1])
    nodes = postorder(root for statement in statements_of(kernel.passes) for root in roots_of(statement))
    loads = [node for node in nodes if isinstance(node, Load)]
    varying = [(node, set(node.index.variables())) for node in loads]
    of_rows = sum(bool(found & others) and along not in found for _, found in varying)
    return along if of_rows >= _FEWEST_NUMBERS else None


def _is_long(loop: LoopVar) -> bool:
    length = loop.extent
    if not isinstance(length, int) or not _SHORTEST <= length <= _LONGEST:
        return False
    strip = min(STRIP, 1 << (length - 1).bit_length())
    return length >= _LEAST_FULL * strip * -(-length // strip)
