"""Elements that each repeat along a row, as a group's scale over its channels: laid out once for many rows.

    for (i0) for (i1) for (i2 < 32)  out[...] = x[...] * scale[8 * i0 + i2 / 4];
    ->  float w[32];
        for (i0) for (i1):
          if (8 * i0 is not where w is from)  for (i2 < 32) w[i2] = scale[8 * i0 + i2 / 4];
          for (i2 < 32)  out[...] = x[...] * w[i2];

Vectors of elements that do not follow each other in memory are slow to load.

So are places from data, of 64 bits each and checked at every point, that are the same in every row:

    for (i0) for (i1)  out[i0, i1] = x[i0, check_index(place[i1], n)];
    ->  int32_t w[...];
        for (i1)  w[i1] = check_index(place[i1], n);
        for (i0) for (i1)  out[i0, i1] = x[i0, w[i1]];
"""

from __future__ import annotations

from collections.abc import Iterable

from inductor_codegen.codegen.cpp.text.scope import Condition
from inductor_codegen.ir.index import Loaded, LoopVar, Quotient, Remainder
from inductor_codegen.ir.kernel import Kernel
from inductor_codegen.ir.scalar import Apply, Constant, Load, Scalar, operands

LONGEST = 1024
"""Elements of a row that is laid out."""
LONGEST_OF_PLACES = 4096
"""The same of a row of places: half of the nearest cache."""
_FEW = 4
"""Rows that do not pay for laying out places."""


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


def repeated_places(
    nodes: Iterable[Scalar], needed: dict[Scalar, set[Condition]], kernel: Kernel
) -> dict[Apply, Load]:
    """Checked places that are needed at every point and are the same for several rows, with the element that each is
    computed from."""
    if len(kernel.inner) != 1 or not kernel.outer:
        return {}
    inner, last = kernel.inner[0], kernel.outer[-1]
    if not isinstance(inner.extent, int) or inner.extent > LONGEST_OF_PLACES:
        return {}
    if isinstance(last.extent, int) and last.extent < _FEW:
        return {}
    found: dict[Apply, Load] = {}
    for node in nodes:
        if (
            isinstance(node, Apply)
            and node.op in ("check_index", "wrap_index")
            and frozenset() in needed[node]
        ):
            load = _element_of(node)
            if load is not None and _is_of_each_row(load, inner, last):
                found[node] = load
    return found


def _element_of(place: Apply) -> Load | None:
    """The one element, converted or not, that tells a place among a number of elements that fits into 32 bits."""
    value, size = place.args
    if not isinstance(size, Constant) or size.value >= 1 << 31:
        return None
    if isinstance(value, Apply) and value.op == "convert_dtype":
        (value,) = value.args
    return value if isinstance(value, Load) else None


def _is_of_each_row(load: Load, inner: LoopVar, last: LoopVar) -> bool:
    """Whether a load moves along the inner loop by itself, and is the same for all points of the last outer one."""
    atoms = list(load.index.atoms())
    return not any(isinstance(atom, Loaded) for atom in atoms) and last not in atoms and inner in atoms


def needed_besides(roots: Iterable[Scalar], known: Iterable[Scalar]) -> set[Scalar]:
    """The scalars that ``roots`` are computed from where those ``known`` are there already."""
    found, pending = set(known), list(roots)
    while pending:
        node = pending.pop()
        if node not in found:
            found.add(node)
            pending.extend(operands(node))
    return found
