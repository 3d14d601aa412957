"""Waiting for collectives as late as possible: where the result is first computed with.

    r = all_reduce(x); w = wait_tensor(r); y = a @ b; z = w + y   ->   ...; y = a @ b; w = wait_tensor(r); z = w + y

Views of what is waited for come along: they read nothing. Collectives stay where the program calls them, among
themselves in the same order on each process.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch._ops import OpOverload

from aot_autograd.recording.values import Value
from fx_interface.operator_facts.collectives import is_wait


def with_late_waits(live: Sequence[Value]) -> Sequence[Value]:
    """``live``, with the waits, and views of their results, where something is computed with these first."""
    if not any(is_wait(value.op) for value in live):
        return live
    order: list[Value] = []
    late: dict[int, Value] = {}

    def fetch(value: Value) -> None:
        for operand in value.operands:
            if operand.number in late:
                fetch(late.pop(operand.number))
        order.append(value)

    for value in live:
        if is_wait(value.op) or (_is_view(value) and any(o.number in late for o in value.operands)):
            late[value.number] = value
        else:
            fetch(value)
    while late:
        fetch(late.pop(next(iter(late))))
    return order


def _is_view(value: Value) -> bool:
    op = value.op
    if not isinstance(op, OpOverload) or op._schema.is_mutable:
        return False
    return any(returned.alias_info is not None for returned in op._schema.returns)
