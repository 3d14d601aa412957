"""Which local variables may still be read at an instruction.

    live = live_variables(body)          # list parallel to body.instructions: names live *before* each

Cells and free variables are not locals and are never listed: they are passed by closure. Handlers count: what a
handler reads is live wherever an exception may lead to it.

    assigned = assigned_variables(body)  # likewise: names that may hold a value; others are unbound
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from dynamo_capture.bytecode.control_flow import ControlFlow
from dynamo_capture.bytecode.depth import stack_depths
from dynamo_capture.bytecode.instruction import CodeBody, Instruction
from dynamo_capture.bytecode.version import LOCAL, RULES


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
    effects = _effects(body)
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


_SHOW_VARIABLES = frozenset({"locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe"})


def _effects(body: CodeBody) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """What each instruction reads and writes. A call of a function that shows the caller's variables reads all that
    surely are assigned."""
    plain = [reads_and_writes(instruction) for instruction in body.instructions]
    shown = _that_show_variables(body)
    if not shown:
        return plain
    assigned, unbound = assigned_variables(body), _possibly_unbound(body)
    return [
        ((*reads, *(assigned[index] - unbound[index])) if index in shown else reads, writes)
        for index, (reads, writes) in enumerate(plain)
    ]


def _that_show_variables(body: CodeBody) -> set[int]:
    """Instructions from the load of a function like ``locals`` to its call, where the stack is as high again."""
    found: set[int] = set()
    depths: list[int | None] = []
    for start, load in enumerate(body.instructions):
        if not load.opname.startswith(("LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD", "LOAD_NAME")):
            continue
        if str(load.argval) not in _SHOW_VARIABLES:
            continue
        depths = depths or stack_depths(body)
        height = depths[start + 1]
        for index in range(start, len(body.instructions)):
            found.add(index)
            after = depths[index + 1] if index + 1 < len(depths) else None
            called = body.instructions[index].opname.startswith("CALL")
            if called and height is not None and after is not None and after <= height:
                break
    return found


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


def assigned_variables(body: CodeBody) -> list[frozenset[str]]:
    """The locals that on some way to each instruction of ``body`` have been given a value, and not deleted since.

    An inlined comprehension saves its variables on the stack and restores them, unbound ones too: a restored variable
    counts as assigned only if it was when saved.
    """

    def transfer(instruction: Instruction, name: str, before: bool, restored: bool | None) -> bool:
        if instruction.opname in ("LOAD_FAST_AND_CLEAR", "DELETE_FAST"):
            return False
        return True if restored is None else restored

    return _Forward(body, transfer).solve(frozenset(body.argument_names))


def _possibly_unbound(body: CodeBody) -> list[frozenset[str]]:
    """The locals that on some way to each instruction have no value."""

    def transfer(instruction: Instruction, name: str, before: bool, restored: bool | None) -> bool:
        if instruction.opname in ("LOAD_FAST_AND_CLEAR", "DELETE_FAST"):
            return True
        return False if restored is None else restored

    return _Forward(body, transfer).solve(frozenset(body.varnames) - frozenset(body.argument_names))


def displaced_cells(body: CodeBody) -> list[frozenset[str]]:
    """The cell and free variables whose slot, before each instruction, may hold something else than their cell.

    That is so while an inlined comprehension uses the slot for a variable of its own and the cell is saved on the
    stack.
    """
    cells = {*body.cellvars, *body.freevars}

    def transfer(instruction: Instruction, name: str, before: bool, restored: bool | None) -> bool:
        if name not in cells:
            return False
        return True if restored is None else restored

    return _Forward(body, transfer).solve(frozenset())


_Transfer = Callable[[Instruction, str, bool, bool | None], bool]
"""(instruction, variable that it writes, whether the fact held before, whether it held when the value now restored was
saved: None if nothing is restored) -> whether the fact holds afterwards."""


class _Forward:
    """A fact about variables that may hold, propagated along control flow to a fixed point."""

    def __init__(self, body: CodeBody, transfer: _Transfer) -> None:
        self._instructions = body.instructions
        self._transfer = transfer
        self._flow = ControlFlow(body.instructions)
        self._depths = stack_depths(body)
        self._saved = _saved_variables(self._flow, self._depths)
        self._facts: list[frozenset[str]] = [frozenset()] * len(body.instructions)

    def solve(self, at_entry: frozenset[str]) -> list[frozenset[str]]:
        if not self._facts:
            return self._facts
        self._facts[0] = at_entry
        reachable = [index for index, depth in enumerate(self._depths) if depth is not None]
        changed = True
        while changed:
            changed = False
            for index in reachable:
                for successor, names in self._outcomes(index):
                    if successor < len(self._facts) and not names <= self._facts[successor]:
                        self._facts[successor] |= names
                        changed = True
        return self._facts

    def _outcomes(self, index: int) -> list[tuple[int, frozenset[str]]]:
        before = self._facts[index]
        after = self._after(index, before)
        found = [(successor, after) for successor in self._flow.normal_successors(index)]
        handler = self._flow.handler(index)
        if handler is not None:
            found.append((handler, before | after))
        return found

    def _after(self, index: int, before: frozenset[str]) -> frozenset[str]:
        instruction = self._instructions[index]
        if instruction.opname == "MAKE_CELL":
            return before - {str(instruction.argval)}
        _, writes = reads_and_writes(instruction)
        after = set(before)
        slot = self._depths[index] or 0
        for name in writes:
            slot -= 1
            save = self._saved[index].get(slot) if instruction.opname in _STORES else None
            restored = None if save is None else name in self._facts[save]
            if self._transfer(instruction, name, name in before, restored):
                after.add(name)
            else:
                after.discard(name)
        return frozenset(after)


_STORES = frozenset({"STORE_FAST", *RULES.pairs})


def _saved_variables(flow: ControlFlow, depths: list[int | None]) -> list[dict[int, int]]:
    """Before each instruction: the stack slots that hold a variable saved by a comprehension -> where it was saved."""
    saved: list[dict[int, int]] = [{} for _ in depths]
    seen = {0}
    pending = [0] if depths else []
    while pending:
        index = pending.pop()
        for successor, slots in _saved_after(flow, depths, saved[index], index):
            if successor not in seen:
                seen.add(successor)
                saved[successor] = slots
                pending.append(successor)
    return saved


def _saved_after(
    flow: ControlFlow, depths: list[int | None], before: dict[int, int], index: int
) -> list[tuple[int, dict[int, int]]]:
    instruction, depth = flow.instructions[index], depths[index] or 0
    after = dict(before)
    if instruction.opname == "LOAD_FAST_AND_CLEAR":
        after[depth] = index
    elif instruction.opname == "SWAP":
        top, other = depth - 1, depth - instruction.arg
        exchanged = {top: other, other: top}
        after = {exchanged.get(slot, slot): save for slot, save in before.items()}
    reached = [
        (successor, {slot: save for slot, save in after.items() if slot < (depths[successor] or 0)})
        for successor in flow.normal_successors(index)
        if successor < len(depths)
    ]
    handler = instruction.handler
    if handler is not None:
        kept = {slot: save for slot, save in before.items() if slot < handler.depth}
        reached.append((flow.index[handler.target], kept))
    return reached
