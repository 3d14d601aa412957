"""Reads of a function's own shared variables in resume functions, where the variable may have no value.

    def f(x):
        print()            # the graph ends here
        v                  # UnboundLocalError: ``v`` is f's own, though the rest of f has it as a free variable
        v = 1
        return lambda: v

Python raises NameError for a free variable. The rest catches that and raises what the function itself would.
"""

from __future__ import annotations

from types import CodeType

from dynamo_capture.bytecode.decoded import Decoded, decoded
from dynamo_capture.bytecode.emit import Emitter
from dynamo_capture.bytecode.instruction import CodeBody, Handler, Instruction, Slot
from dynamo_capture.bytecode.liveness import reads_and_writes

_READS = ("LOAD_DEREF", "DELETE_DEREF")


def raise_as_own(facts: Decoded, twins: dict[Instruction, Instruction]) -> list[Instruction]:
    """Protect those of ``twins``, copies of the original's instructions, that read a variable of its own which may have
    no value there; the handlers, to be added to them."""
    own = {*facts.body.cellvars}
    reads = {
        index
        for index, one in enumerate(facts.body.instructions)
        if one.opname in _READS and one.argval in own
    }
    if not reads:
        return []
    empty, deleted = _possibly_empty(facts), _deleted_inside(facts.body)
    handlers: list[Instruction] = []
    for index in sorted(reads):
        original, depth = facts.body.instructions[index], facts.depths[index]
        if depth is not None and original.argval in empty[index] | deleted:
            handlers += _protect(twins[original], depth)
    return handlers


def _protect(read: Instruction, depth: int) -> list[Instruction]:
    name = read.argval.name if isinstance(read.argval, Slot) else read.argval
    emitter = Emitter(read.position, read.handler)
    emitter.emit("PUSH_EXC_INFO")
    emitter.pop_top()
    emitter.emit("POP_EXCEPT")  # so that the NameError is not the context of the other
    emitter.begin_call()
    emitter.load_const(UnboundLocalError)
    emitter.end_callable()
    emitter.load_const(f"cannot access local variable {name!r} where it is not associated with a value")
    emitter.call(1)
    emitter.emit("RAISE_VARARGS", 1)
    read.handler = Handler(emitter.instructions[0], depth)
    return emitter.instructions


def _possibly_empty(facts: Decoded) -> list[frozenset[str]]:
    """The function's own shared variables that, before each instruction, may have no value."""
    body, flow = facts.body, facts.flow
    found: list[frozenset[str]] = [frozenset()] * (len(body.instructions) + 1)
    own = frozenset(body.cellvars)
    found[0] = own - frozenset(body.argument_names)
    pending, seen = [0], {0}
    while pending:
        index = pending.pop()
        before = after = found[index]
        instruction = body.instructions[index]
        if instruction.opname == "STORE_DEREF":
            after = before - {str(instruction.argval)}
        elif instruction.opname == "DELETE_DEREF":
            after = before | {str(instruction.argval)}
        else:  # a comprehension has a cell of its own, and puts back one that may be empty
            after = before | own.intersection(reads_and_writes(instruction)[1])
        handler = flow.handlers[index]
        reached = [(successor, after) for successor in flow.successors[index]]
        if handler is not None:
            reached.append((handler, before | after))
        for successor, names in reached:
            if successor < len(body.instructions) and (
                successor not in seen or not names <= found[successor]
            ):
                seen.add(successor)
                found[successor] |= names
                pending.append(successor)
    return found


def _deleted_inside(body: CodeBody) -> frozenset[str]:
    """The shared variables that functions within delete."""
    found: set[str] = set()
    for instruction in body.instructions:
        if isinstance(instruction.argval, CodeType):
            inner = decoded(instruction.argval).body
            names = {str(one.argval) for one in inner.instructions if one.opname == "DELETE_DEREF"}
            found |= (names | _deleted_inside(inner)) & {*inner.freevars}
    return frozenset(found)
