"""Lines of a tensor in which a row's points look elements up in any order.

    out[i0, i1] = x[i0, index[i0, i1]]   ->   the line x[i0] is fetched before the loop over i1

A processor follows the order of memory, not that of an index: line after line it would wait for most of its pieces.
"""

from __future__ import annotations

from collections.abc import Iterable

from fx_interface.python_runtime.quick_dataclasses import dataclass
from inductor_codegen.ir.index import Index, Loaded, LoopVar
from inductor_codegen.ir.kernel import Kernel
from inductor_codegen.ir.scalar import Apply, Constant, Load, Scalar

_LONGEST = 1 << 15
"""Bytes of a line that stay in the nearest cache."""
_SHORTEST = 1 << 9
"""Bytes of a line from which fetching it saves time."""
PIECE = 64
"""Bytes that are fetched at once."""


@dataclass(frozen=True, slots=True)
class Line:
    """``size`` elements of a buffer from ``start`` on."""

    buffer: str
    start: Index
    size: int
    step: int
    """Elements of a piece that is fetched at once."""


def looked_up_lines(moving: Iterable[Scalar], kernel: Kernel) -> list[Line]:
    """The lines that the scalars that are computed at each point of the one inner loop look up; no line twice."""
    if len(kernel.inner) != 1 or not kernel.outer:
        return []
    found: dict[Line, None] = {}
    computed = list(moving)
    for node in computed:
        line = _line(node, kernel.inner[0], set(computed)) if isinstance(node, Load) else None
        if line is not None:
            found[line] = None
    return list(found)


def _line(load: Load, inner: LoopVar, moving: set[Scalar]) -> Line | None:
    """The line that an element is looked up in, if it is another one for each row and much of it is read."""
    named = [(atom, step) for atom, step in load.index.terms if isinstance(atom, Loaded)]
    rest = Index(load.index.const, tuple(t for t in load.index.terms if not isinstance(t[0], Loaded)))
    if len(named) != 1 or named[0][1] != 1 or not rest.terms or inner in set(rest.variables()):
        return None
    place = named[0][0].scalar
    if place not in moving or not isinstance(place, Apply) or place.op not in ("check_index", "wrap_index"):
        return None
    extent = place.args[1]
    if not isinstance(extent, Constant) or not isinstance(inner.extent, int):
        return None
    size = int(extent.value)
    width = load.dtype.itemsize
    fits = _SHORTEST <= size * width <= _LONGEST and size <= 4 * inner.extent
    return Line(load.buffer, rest, size, PIECE // width) if fits else None
