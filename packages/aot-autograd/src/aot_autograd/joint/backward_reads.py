"""Which gradients of a backward are computed from which arriving ones, and together with what is saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aot_autograd.plan import Region, Tangent
from aot_autograd.recording.ancestry import largest
from aot_autograd.recording.values import Value, operands


def tangents_under(live: Sequence[Value], tangents: Sequence[Value]) -> dict[int, frozenset[int]]:
    """For each value (by number) the positions of the tangents that it is computed from."""
    under: dict[int, frozenset[int]] = {value.number: frozenset([i]) for i, value in enumerate(tangents)}
    nothing: frozenset[int] = frozenset()
    for value in live:
        if value.number not in under:
            under[value.number] = nothing.union(*(under.get(o.number, nothing) for o in operands(value)))
    return under


def groups_of(live: Sequence[Value], under: Mapping[int, frozenset[int]], count: int) -> tuple[int, ...]:
    """The tangents' groups, named by their least member: a call that takes gradients of several tangents and something
    of the forward joins them. Nothing where all are one."""
    group = list(range(count))
    for value in live:
        together = sorted({group[i] for i in under[value.number]})
        if len(together) > 1 and not all(under.get(operand.number) for operand in operands(value)):
            group = [together[0] if number in together else number for number in group]
    return tuple(group) if len(set(group)) > 1 else ()


def needed_by(
    live: Sequence[Value],
    under: Mapping[int, frozenset[int]],
    groups: tuple[int, ...],
    saved: Sequence[Value],
) -> tuple[tuple[int, ...], ...]:
    """For each saved value the groups of the tangents that something is computed from together with it. What is
    computed from a tangent is nothing where that does not arrive, whatever is done with it."""
    users: dict[int, set[int]] = {}
    for value in reversed(live):
        mine = {groups[i] for i in under[value.number]} or users.get(value.number, set())
        for operand in operands(value):
            users.setdefault(operand.number, set()).update(mine)
    return tuple(tuple(sorted(users.get(value.number, ()))) for value in saved)


def reading_regions(
    live: Sequence[Value], tangents: Sequence[tuple[Value, Tangent]], gradients: Sequence[tuple[int, Value]]
) -> tuple[Region, ...]:
    """The largest regions of the backward in which a gradient is computed with something that is not: from which
    results' gradients, by number, and for which inputs'."""
    above = {value.number: 1 << tangent.graph_index for value, tangent in tangents}
    for value in live:
        if value.number not in above:
            above[value.number] = _joined(above, value)
    below: dict[int, int] = {}
    for index, value in gradients:
        below[value.number] = below.get(value.number, 0) | 1 << index
    regions: set[Region] = set()
    for value in reversed(live):
        mine = below.get(value.number, 0)
        for operand in operands(value):
            below[operand.number] = below.get(operand.number, 0) | mine
        if above[value.number] and not all(above.get(operand.number) for operand in operands(value)):
            regions.add((above[value.number], mine))
    return largest(regions)


def _joined(masks: Mapping[int, int], value: Value) -> int:
    found = 0
    for operand in operands(value):
        found |= masks.get(operand.number, 0)
    return found
