"""Which gradients of a backward are computed from which arriving ones, and together with what is saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aot_autograd.plan import Region, Tangent
from aot_autograd.recording.ancestry import largest
from aot_autograd.recording.values import Value


def tangents_under(live: Sequence[Value], tangents: Sequence[Value]) -> dict[int, frozenset[int]]:
    """For each value (by number) the positions of the tangents that it is computed from."""
    under: dict[int, frozenset[int]] = {value.number: frozenset([i]) for i, value in enumerate(tangents)}
    nothing: frozenset[int] = frozenset()
    for value in live:
        if value.number not in under:
            under[value.number] = nothing.union(*(under.get(o.number, nothing) for o in value.operands))
    return under


def needed_by(
    live: Sequence[Value], tangents: Sequence[tuple[Value, Tangent]], saved: Sequence[Value]
) -> tuple[int, ...]:
    """For each saved value the results, as bits, from whose gradients something is computed together with it. Where
    none of those arrives, what is computed is zero, whatever the value is."""
    above = _results_above(live, tangents)
    users: dict[int, int] = {}
    for value in reversed(live):
        mine = above[value.number] or users.get(value.number, 0)
        for operand in value.operands:
            users[operand.number] = users.get(operand.number, 0) | mine
    return tuple(users.get(value.number, 0) for value in saved)


def reading_regions(
    live: Sequence[Value], tangents: Sequence[tuple[Value, Tangent]], gradients: Sequence[tuple[int, Value]]
) -> tuple[Region, ...]:
    """The largest regions of the backward in which a gradient is computed with something that is not: from which
    results' gradients, by number, and for which inputs'."""
    above = _results_above(live, tangents)
    below: dict[int, int] = {}
    for index, value in gradients:
        below[value.number] = below.get(value.number, 0) | 1 << index
    regions: set[Region] = set()
    for value in reversed(live):
        mine = below.get(value.number, 0)
        for operand in value.operands:
            below[operand.number] = below.get(operand.number, 0) | mine
        if above[value.number] and not all(above.get(operand.number) for operand in value.operands):
            regions.add((above[value.number], mine))
    return largest(regions)


def _results_above(live: Sequence[Value], tangents: Sequence[tuple[Value, Tangent]]) -> dict[int, int]:
    """For each value, by number, the results from whose gradients it is computed, as bits."""
    above = {value.number: 1 << tangent.graph_index for value, tangent in tangents}
    for value in live:
        if value.number not in above:
            above[value.number] = _joined(above, value)
    return above


def _joined(masks: Mapping[int, int], value: Value) -> int:
    found = 0
    for operand in value.operands:
        found |= masks.get(operand.number, 0)
    return found
