"""Which local variables may still be read at an instruction.

    live = live_variables(body)          # list parallel to body.instructions: names live *before* each

Cells and free variables are not locals and are never listed: they are passed by closure. Handlers count: what a handler
reads is live wherever an exception may lead to it.
"""

from __future__ import annotations

from collections import defaultdict

from dynamo_capture.bytecode.control_flow import ControlFlow
from dynamo_capture.bytecode.instruction import CodeBody, Instruction
from dynamo_capture.bytecode.version import LOCAL, RULES

_READS = frozenset({"LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_AND_CLEAR", "DELETE_FAST"})


def reads_and_writes(instruction: Instruction) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The locals that an instruction reads before it writes any, and those that it overwrites."""
    name, argval = instruction.opname, instruction.argval
    if name in LOCAL and isinstance(argval, str):
        if name == "STORE_FAST":
            return (), (argval,)
        writes = (argval,) if name in ("LOAD_FAST_AND_CLEAR", "DELETE_FAST") else ()
        return (argval,), writes
    if name in RULES.pairs and isinstance(argval, tuple):
        one, two = argval
        match name:
            case "LOAD_FAST_LOAD_FAST":
                return (one, two), ()
            case "STORE_FAST_LOAD_FAST":
                return (() if one == two else (two,)), (one,)
            case _:
                return (), (one, two)
    return (), ()


def live_variables(body: CodeBody) -> list[frozenset[str]]:
    """The locals live before each instruction of ``body``."""
    flow = ControlFlow(body.instructions)
    count = len(body.instructions)
    predecessors: dict[int, list[int]] = defaultdict(list)
    protected: dict[int, list[int]] = defaultdict(list)
    for index in range(count):
        for successor in flow.normal_successors(index):
            predecessors[successor].append(index)
        handler = flow.handler(index)
        if handler is not None:
            protected[handler].append(index)
    not_locals = frozenset(body.cellvars) | frozenset(body.freevars)
    effects = [reads_and_writes(instruction) for instruction in body.instructions]
    live: list[frozenset[str]] = [frozenset()] * count
    pending = list(range(count))
    waiting = set(pending)
    while pending:
        index = pending.pop()
        waiting.discard(index)
        updated = _live_before(flow, live, effects, index) - not_locals
        if updated != live[index]:
            live[index] = updated
            for earlier in (*predecessors[index], *protected[index]):
                if earlier not in waiting:
                    waiting.add(earlier)
                    pending.append(earlier)
    return live


def _live_before(
    flow: ControlFlow,
    live: list[frozenset[str]],
    effects: list[tuple[tuple[str, ...], tuple[str, ...]]],
    index: int,
) -> frozenset[str]:
    reads, writes = effects[index]
    after: frozenset[str] = frozenset()
    for successor in flow.normal_successors(index):
        if successor < len(live):
            after |= live[successor]
    before = (after - frozenset(writes)) | frozenset(reads)
    handler = flow.handler(index)
    return before if handler is None else before | live[handler]
