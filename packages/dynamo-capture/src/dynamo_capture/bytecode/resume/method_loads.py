"""Instructions that load a method for a call: they leave the method and its self, or NULL and whatever it is.

Which of the two is known only when they have run, and a NULL cannot be handed over to a resume function, nor can
one place of it be entered with both. So where such an instruction is the one at which a graph ends, or the graph
ends between it and its call (``open_at``), which code that runs uncaptured may come to as well, it leaves two values:
the method and its self as ever, or ``operator.call`` and what is called by itself.

    LOAD_METHOD name   ->   load_method(owner, name); UNPACK_SEQUENCE 2

The method of a class in C that is called with its self names its class where it refuses arguments (``set.pop()``);
as an attribute it would name the object's.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence

from dynamo_capture import _eval_frame
from dynamo_capture.bytecode.depth import stack_depths
from dynamo_capture.bytecode.emit import Emitter
from dynamo_capture.bytecode.instruction import CodeBody, Instruction
from dynamo_capture.bytecode.resume.analysis import VALUE, StackSlot


def loads_method(instruction: Instruction) -> bool:
    """Whether it is such an instruction."""
    if instruction.opname == "LOAD_METHOD":
        return True
    return instruction.opname in ("LOAD_ATTR", "LOAD_SUPER_ATTR") and bool(instruction.arg & 1)


def load_pair(instruction: Instruction) -> list[Instruction]:
    """Make a method's load leave two values; the instructions that follow on it."""
    emitter = Emitter(instruction.position, instruction.handler)
    if instruction.opname == "LOAD_SUPER_ATTR":
        instruction.arg &= ~1
        emitter.load_const(operator.call)
        emitter.swap(2)
        return emitter.instructions
    name = instruction.argval
    instruction.opname, instruction.arg, instruction.argval = "NOP", 0, None
    emitter.load_const(_eval_frame.load_method)
    emitter.swap(2)
    emitter.load_const(name)
    emitter.call_with_self(2)
    emitter.emit("UNPACK_SEQUENCE", 2)
    return emitter.instructions


def open_at(body: CodeBody, places: Iterable[int]) -> set[int]:
    """The method loads whose calls have not been made at one of these places. An expression's code is in one piece,
    from what lies lowest on the stack on."""
    found: set[int] = set()
    instructions = body.instructions
    if not any(map(loads_method, instructions)):
        return found
    depths = stack_depths(body)
    for place in places:
        lowest = depths[place] or 0
        for index in range(place - 1, -1, -1):
            if lowest < 2:
                break
            depth = depths[index]
            if depth is None:
                continue
            if loads_method(instructions[index]) and depth - _taken(instructions[index]) + 2 <= lowest:
                found.add(index)
            lowest = min(lowest, depth)
    return found


def _taken(load: Instruction) -> int:
    return 3 if load.opname == "LOAD_SUPER_ATTR" else 1


def stack_after(instruction: Instruction, before: Sequence[StackSlot]) -> list[StackSlot]:
    """The stack after the load."""
    return [*before[: len(before) - _taken(instruction)], VALUE, VALUE]
