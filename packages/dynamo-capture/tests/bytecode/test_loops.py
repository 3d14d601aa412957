"""Which instructions belong to a loop."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from dynamo_capture.bytecode.control_flow import ControlFlow
from dynamo_capture.bytecode.decode import decode
from dynamo_capture.bytecode.loops import head_behind, loop_around, loop_left_at, loop_region, region_from


def _flow(function: Callable[..., Any]) -> ControlFlow:
    return ControlFlow(decode(function.__code__).instructions)


def _heads(flow: ControlFlow) -> list[int]:
    return [index for index, one in enumerate(flow.instructions) if one.opname == "FOR_ITER"]


def nested(rows: Any) -> Any:
    total = 0
    for row in rows:
        for number in row:
            if number == 7:
                continue
            total += number
        before = total
    return before


def left(rows: Any) -> Any:
    for row in rows:
        if row == 1:
            found = "one"
            break
        if row == 2:
            return "two"
    else:
        found = "none"
    return found


def once(rows: Any) -> Any:
    for row in rows:
        return row
    return None


def _stored(flow: ControlFlow, region: frozenset[int]) -> set[Any]:
    return {
        flow.instructions[index].argval for index in region if flow.instructions[index].opname == "STORE_FAST"
    }


def test_a_loop_has_the_loops_inside() -> None:
    flow = _flow(nested)
    outer, inner = _heads(flow)
    assert _stored(flow, loop_region(flow, outer)) == {"row", "number", "total", "before"}
    assert _stored(flow, loop_region(flow, inner)) == {"number", "total"}


def test_what_leaves_a_loop_is_not_in_it() -> None:
    flow = _flow(left)
    (head,) = _heads(flow)
    assert _stored(flow, loop_region(flow, head)) == {"row"}


def test_a_loop_that_never_goes_round_is_none() -> None:
    flow = _flow(once)
    (head,) = _heads(flow)
    assert loop_region(flow, head) == frozenset()


def test_the_innermost_loop_around_an_instruction() -> None:
    flow = _flow(nested)
    outer, inner = _heads(flow)
    places = {one.argval: index for index, one in enumerate(flow.instructions) if one.opname == "STORE_FAST"}
    assert loop_around(flow, places["number"]) == inner
    assert loop_around(flow, places["before"]) == outer
    assert loop_around(flow, inner - 1) == inner  # GET_ITER
    assert loop_around(flow, outer - 1) == outer
    assert loop_around(flow, 0) is None
    assert loop_around(flow, len(flow.instructions) - 1) is None


def left_at_branches(items: Any, go: Any) -> Any:
    found = []
    for item in items:
        if item == 1:
            continue
        found.append(item)
        if item == 2:
            break
    while go(found):
        if found:
            found.pop()
        if item == 3:
            return None
    return found


def test_the_loop_that_a_branch_may_leave() -> None:
    flow = _flow(left_at_branches)
    (head,) = _heads(flow)
    regions = [
        loop_left_at(flow, index)
        for index, one in enumerate(flow.instructions)
        if one.opname.startswith("POP_JUMP")
    ]
    found = [region for region in regions if region]
    assert found[0] == loop_region(flow, head)
    methods = [
        {one.argval for index, one in enumerate(flow.instructions) if index in region and one.argval}
        for region in found
    ]
    assert ["append" in names for names in methods] == [True] + [False] * (len(found) - 1)
    assert ["pop" in names for names in methods] == [False] + [True] * (len(found) - 1)
    assert len(found) < len(regions)  # `item == 1` and `if found` stay in their loops


def test_a_loop_is_left_from_its_beginning_to_its_end() -> None:
    flow = _flow(nested)
    outer, inner = _heads(flow)
    assert (head_behind(flow, outer - 1), head_behind(flow, outer)) == (outer, None)
    assert region_from(flow, outer - 1, outer) == loop_region(flow, outer) | {outer - 1}
    assert region_from(flow, inner, inner) == loop_region(flow, inner)


def comprehended(rows: Any) -> Any:
    row = 3
    found = [number * row for row, number in rows]
    return found, row


@pytest.mark.skipif(
    sys.version_info < (3, 12), reason="a comprehension is a function of its own before CPython 3.12"
)
def test_a_comprehension_is_left_with_the_variables_that_it_puts_away() -> None:
    flow = _flow(comprehended)
    (head,) = _heads(flow)
    begin = next(index for index, one in enumerate(flow.instructions) if one.opname == "GET_ITER")
    assert head_behind(flow, begin) == head == loop_around(flow, begin)
    left = region_from(flow, begin, head)
    assert left == frozenset(range(begin, max(left) + 1))
    assert _stored(flow, left) >= {"row", "number"}
    behind = [one.opname for one in flow.instructions[max(left) + 1 :] if one.argval == "row"]
    assert behind[0].startswith("LOAD_FAST")  # put back before it is read
