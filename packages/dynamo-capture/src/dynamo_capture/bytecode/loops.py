"""Loops of a body: which instructions belong to the one whose FOR_ITER has a given index.

region = loop_region(flow, head)      # the head and the body, inner loops included
head = loop_around(flow, index)       # the innermost loop that instruction ``index`` belongs to, or begins
region = loop_left_at(flow, index)    # the loop, of either kind, that branch ``index`` may leave

From CPython 3.12 on a comprehension is a loop of the function that it stands in. Between its GET_ITER and its FOR_ITER
it puts away the variables of the same names, and behind its last round it puts them back:

head = head_behind(flow, index)                       # the FOR_ITER of the loop whose GET_ITER is ``index``
whole = region_from(flow, index, head)                # all that runs from there until the loop has ended
"""

from __future__ import annotations

from typing import Final

from dynamo_capture.bytecode.control_flow import ControlFlow

_PREPARES_COMPREHENSION: Final = frozenset(
    {"LOAD_FAST_AND_CLEAR", "MAKE_CELL", "SWAP", "COPY", "BUILD_LIST", "BUILD_SET", "BUILD_MAP"}
)


def loop_region(flow: ControlFlow, head: int) -> frozenset[int]:
    """What runs again and again between two visits of ``head``; empty where no way leads back to it. What only leaves
    the loop (after a ``break``), handlers and the place after it are not in it."""
    ways_in: dict[int, list[int]] = {}
    ahead = {head}
    pending = [head]
    while pending:
        index = pending.pop()
        for successor in flow.successors[index]:
            ways_in.setdefault(successor, []).append(index)
            if successor not in ahead and successor < len(flow.instructions):
                ahead.add(successor)
                pending.append(successor)
    pending = [index for index in ways_in.get(head, ()) if index > head]
    if not pending:
        return frozenset()
    found = {head}
    while pending:
        index = pending.pop()
        if index not in found:
            found.add(index)
            pending += ways_in.get(index, ())
    return frozenset(found)


def loop_around(flow: ControlFlow, index: int) -> int | None:
    """The FOR_ITER of the innermost loop that instruction ``index`` belongs to, or whose GET_ITER it is."""
    instructions = flow.instructions
    begun = head_behind(flow, index)
    index = index if begun is None else begun
    for head in range(index, -1, -1):
        if instructions[head].opname == "FOR_ITER":
            region = loop_region(flow, head)
            if index in region:
                return head
    return None


def head_behind(flow: ControlFlow, index: int) -> int | None:
    """The FOR_ITER that the GET_ITER ``index`` belongs to, at once behind it or behind what begins a comprehension."""
    instructions = flow.instructions
    if instructions[index].opname != "GET_ITER":
        return None
    head = index + 1
    if instructions[head].opname == "LOAD_FAST_AND_CLEAR":
        while instructions[head].opname in _PREPARES_COMPREHENSION:
            head += 1
    return head if instructions[head].opname == "FOR_ITER" else None


def region_from(flow: ControlFlow, index: int, head: int) -> frozenset[int]:
    """What runs from instruction ``index``, the FOR_ITER ``head`` or its GET_ITER, until the loop has ended. For a
    comprehension that is until its variables are put back; its result is on the stack then, or in a variable."""
    region = loop_region(flow, head)
    instructions = flow.instructions
    put_away = {one.argval for one in instructions[index:head] if one.opname == "LOAD_FAST_AND_CLEAR"}
    end = max(region) + 1 if put_away else index + 1
    while put_away:
        if instructions[end].opname == "STORE_FAST":
            put_away.discard(instructions[end].argval)
        end += 1
    return region.union(range(index, end))


def loop_left_at(flow: ControlFlow, index: int) -> frozenset[int]:
    """The loop around a branch, if one of its ways leaves that and the other stays; else nothing."""
    head = loop_around(flow, index)
    region = _cycle(flow, index) if head is None else loop_region(flow, head)
    ways = flow.successors[index] if index in region else ()
    return region if any(way not in region for way in ways) else frozenset()


def _cycle(flow: ControlFlow, index: int) -> frozenset[int]:
    """What control may come to from an instruction and come back to it from."""
    ahead = flow.reachable(flow.successors[index])
    ways_in: dict[int, list[int]] = {}
    for one in ahead:
        for successor in flow.successors[one]:
            ways_in.setdefault(successor, []).append(one)
    found: set[int] = set()
    pending = [index] if index in ahead else []
    while pending:
        one = pending.pop()
        if one not in found:
            found.add(one)
            pending += ways_in.get(one, ())
    return frozenset(found)
