"""Elements that each repeat along a row, as a group's scale over its channels: laid out once for many rows.

    for (i0) for (i1) for (i2 < 32)  out[...] = x[...] * scale[8 * i0 + i2 / 4];
    ->  float w[32];
        for (i0) for (i1):
          if (8 * i0 is not where w is from)  for (i2 < 32) w[i2] = scale[8 * i0 + i2 / 4];
          for (i2 < 32)  out[...] = x[...] * w[i2];

Vectors of elements that do not follow each other in memory are slow to load.
"""

from __future__ import annotations

from collections.abc import Iterable

from inductor_codegen.codegen.cpp.text.scope import Condition
from inductor_codegen.ir.index import Loaded, LoopVar, Quotient, Remainder
from inductor_codegen.ir.kernel import Kernel
from inductor_codegen.ir.scalar import Load, Scalar

LONGEST = 1024
"""Elements of a row that is laid out."""


def repeated_loads(
    nodes: Iterable[Scalar], needed: dict[Scalar, set[Condition]], kernel: Kernel
) -> list[Load]:
    """Loads that are needed at every point, repeat along the inner loop and are the same for several rows."""
    if len(kernel.inner) != 1 or not kernel.outer:
        return []
    inner = kernel.inner[0]
    if not isinstance(inner.extent, int) or inner.extent > LONGEST:
        return []
    return [
        node
        for node in nodes
        if isinstance(node, Load) and frozenset() in needed[node] and _repeats(node, inner, kernel.outer[-1])
    ]


def _repeats(load: Load, inner: LoopVar, last: LoopVar) -> bool:
    atoms = list(load.index.atoms())
    if any(isinstance(atom, Loaded) for atom in atoms) or last in atoms or atoms.count(inner) != 1:
        return False
    return any(isinstance(atom, Quotient | Remainder) and inner in atom.numerator.atoms() for atom in atoms)
