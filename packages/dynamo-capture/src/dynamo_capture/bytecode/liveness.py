"""Which local variables may still be read at an instruction.

    live = live_variables(body)          # list parallel to body.instructions: names live *before* each

Cells and free variables are not locals and are never listed: they are passed by closure. Handlers count: what a
handler reads is live wherever an exception may lead to it.

    assigned = assigned_variables(body)  # likewise: names that may hold a value; others are unbound
"""

from __future__ import annotations

from collections.abc import Iterable

from dynamo_capture.bytecode.control_flow import ControlFlow
from dynamo_capture.bytecode.depth import stack_depths
from dynamo_capture.bytecode.instruction import CodeBody, Instruction
from dynamo_capture.bytecode.versions.running import LOCAL, RULES

_OF_LOCALS = LOCAL | RULES.pairs
_NOTHING: tuple[tuple[str, ...], tuple[str, ...]] = (), ()


def reads_and_writes(instruction: Instruction) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The locals that an instruction reads before it writes any, and those that it overwrites."""
    name, argval = instruction.opname, instruction.argval
    if name not in _OF_LOCALS:
        return _NOTHING
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
    return _NOTHING


class _Names:
    """Sets of names as integers, one bit for each name: joining two is one operation."""

    __slots__ = ("_bits", "_sets")

    def __init__(self) -> None:
        self._bits: dict[str, int] = {}
        self._sets: dict[int, frozenset[str]] = {0: frozenset()}

    def bit(self, name: str) -> int:
        return self._bits.setdefault(name, 1 << len(self._bits))

    def bits(self, names: Iterable[str]) -> int:
        found = 0
        for name in names:
            found |= self.bit(name)
        return found

    def sets(self, masks: Iterable[int]) -> list[frozenset[str]]:
        return [self._sets[mask] if mask in self._sets else self._set(mask) for mask in masks]

    def _set(self, mask: int) -> frozenset[str]:
        self._sets[mask] = made = frozenset(name for name, bit in self._bits.items() if mask & bit)
        return made


def live_variables(body: CodeBody, flow: ControlFlow | None = None) -> list[frozenset[str]]:
    """The locals live before each instruction of ``body``; ``flow`` is the body's, if known."""
    flow = flow or ControlFlow(body.instructions)
    successors, handlers, count = flow.successors, flow.handlers, len(body.instructions)
    names = _Names()
    locals_only = ~names.bits((*body.cellvars, *body.freevars))
    effects = [
        (0, -1) if effect is _NOTHING else (names.bits(effect[0]) & locals_only, ~names.bits(effect[1]))
        for effect in _effects(body, flow)
    ]
    predecessors: list[list[int]] = [[] for _ in range(count + 1)]
    for index, following in enumerate(successors):
        for successor in following:
            predecessors[successor].append(index)
        handler = handlers[index]
        if handler is not None:
            predecessors[handler].append(index)
    live = [0] * (count + 1)
    pending = list(range(count))
    waiting = set(pending)
    while pending:
        index = pending.pop()
        waiting.discard(index)
        reads, kept = effects[index]
        updated = 0
        for successor in successors[index]:
            updated |= live[successor]
        updated = updated & kept | reads
        handler = handlers[index]
        if handler is not None:
            updated |= live[handler]
        if updated != live[index]:
            live[index] = updated
            for earlier in predecessors[index]:
                if earlier not in waiting:
                    waiting.add(earlier)
                    pending.append(earlier)
    return names.sets(live[:count])


SHOW_VARIABLES = frozenset({"locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe"})
"""Names of functions that show the variables of who calls them."""

_NAMING = frozenset({"LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD", "LOAD_NAME"})


def _effects(body: CodeBody, flow: ControlFlow) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """What each instruction reads and writes. A call of a function that shows the caller's variables reads all that
    surely are assigned."""
    plain = [reads_and_writes(instruction) for instruction in body.instructions]
    shown = _that_show_variables(body, flow)
    if not shown:
        return plain
    assigned, unbound = assigned_variables(body, flow), _possibly_unbound(body, flow)
    return [
        ((*reads, *(assigned[index] - unbound[index])) if index in shown else reads, writes)
        for index, (reads, writes) in enumerate(plain)
    ]


def _that_show_variables(body: CodeBody, flow: ControlFlow) -> set[int]:
    """Instructions from the load of a function like ``locals`` to its call, where the stack is as high again."""
    found: set[int] = set()
    depths: list[int | None] = []
    for start, load in enumerate(body.instructions):
        if load.opname not in _NAMING or load.argval not in SHOW_VARIABLES:
            continue
        depths = depths or stack_depths(body, flow)
        height = depths[start + 1]
        for index in range(start, len(body.instructions)):
            found.add(index)
            after = depths[index + 1] if index + 1 < len(depths) else None
            called = body.instructions[index].opname.startswith("CALL")
            if called and height is not None and after is not None and after <= height:
                break
    return found


def assigned_variables(
    body: CodeBody, flow: ControlFlow | None = None, depths: list[int | None] | None = None
) -> list[frozenset[str]]:
    """The locals that on some way to each instruction of ``body`` have been given a value, and not deleted since.

    An inlined comprehension saves its variables on the stack and restores them, unbound ones too: a restored variable
    counts as assigned only if it was when saved.
    """
    return _holding(body, body.argument_names, flow, depths, cleared=False, stored=True)


def _possibly_unbound(body: CodeBody, flow: ControlFlow) -> list[frozenset[str]]:
    """The locals that on some way to each instruction have no value."""
    without = frozenset(body.varnames) - frozenset(body.argument_names)
    return _holding(body, without, flow, None, cleared=True, stored=False)


def displaced_cells(
    body: CodeBody, flow: ControlFlow | None = None, depths: list[int | None] | None = None
) -> list[frozenset[str]]:
    """The cell and free variables whose slot, before each instruction, may hold something else than their cell.

    That is so while an inlined comprehension uses the slot for a variable of its own and the cell is saved on the
    stack.
    """
    cells = frozenset((*body.cellvars, *body.freevars))
    if not any(cells.intersection(reads_and_writes(instruction)[1]) for instruction in body.instructions):
        return [frozenset()] * len(body.instructions)
    return _holding(body, (), flow, depths, cleared=True, stored=True, among=cells)


def _holding(
    body: CodeBody,
    at_entry: Iterable[str],
    flow: ControlFlow | None,
    depths: list[int | None] | None,
    *,
    cleared: bool,
    stored: bool,
    among: frozenset[str] | None = None,
) -> list[frozenset[str]]:
    """The variables of which a fact may hold before each instruction, propagated along control flow to a fixed point.

    ``cleared``, ``stored``: whether it holds of a variable that an instruction deletes, or stores; of one that is
    restored it holds if it did when the variable was saved. ``among``: it holds of no others.
    """
    flow = flow or ControlFlow(body.instructions)
    depths = depths or stack_depths(body, flow)
    names, count = _Names(), len(body.instructions)
    transfers = _transfers(flow, depths, names, cleared, stored, among)
    facts = [0] * (count + 1)
    facts[0] = names.bits(at_entry)
    reachable = [index for index, depth in enumerate(depths) if depth is not None]
    changed = True
    while changed:
        changed = False
        for index in reachable:
            before = facts[index]
            kept, gained, restored = transfers[index]
            after = before & kept | gained
            for bit, save in restored:
                after |= facts[save] & bit
            for successor in flow.successors[index]:
                if after & ~facts[successor]:
                    facts[successor] |= after
                    changed = True
            handler = flow.handlers[index]
            if handler is not None and (before | after) & ~facts[handler]:
                facts[handler] |= before | after
                changed = True
    return names.sets(facts[:count])


_Transfer = tuple[int, int, tuple[tuple[int, int], ...]]
"""What an instruction leaves of the variables of which a fact holds, those that it adds, and those that it restores,
each with the instruction that saved it."""

_SAME: _Transfer = -1, 0, ()


def _transfers(
    flow: ControlFlow,
    depths: list[int | None],
    names: _Names,
    cleared: bool,
    stored: bool,
    among: frozenset[str] | None,
) -> list[_Transfer]:
    saved = _saved_variables(flow, depths)
    found: list[_Transfer] = []
    for index, instruction in enumerate(flow.instructions):
        if instruction.opname == "MAKE_CELL":
            found.append((~names.bit(str(instruction.argval)), 0, ()))
            continue
        _, writes = reads_and_writes(instruction)
        if not writes:
            found.append(_SAME)
            continue
        gained, restored = 0, []
        holds = cleared if instruction.opname in _CLEARS else stored
        slot = depths[index] or 0
        for name in writes:
            slot -= 1
            save = saved[index].get(slot) if saved and instruction.opname in _STORES else None
            if among is not None and name not in among:
                continue
            if save is not None:
                restored.append((names.bit(name), save))
            elif holds:
                gained |= names.bit(name)
        found.append((~names.bits(writes), gained, tuple(restored)))
    return found


_CLEARS = frozenset({"LOAD_FAST_AND_CLEAR", "DELETE_FAST"})
_STORES = frozenset({"STORE_FAST", *RULES.pairs})


def _saved_variables(flow: ControlFlow, depths: list[int | None]) -> list[dict[int, int]]:
    """Before each instruction: the stack slots that hold a variable saved by a comprehension -> where it was saved.
    Empty if nothing is saved."""
    if not any(instruction.opname == "LOAD_FAST_AND_CLEAR" for instruction in flow.instructions):
        return []
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
        for successor in flow.successors[index]
        if successor < len(depths)
    ]
    handler = instruction.handler
    if handler is not None:
        kept = {slot: save for slot, save in before.items() if slot < handler.depth}
        reached.append((flow.index[handler.target], kept))
    return reached
