"""Instructions as records whose jumps and exception handlers point at other instructions, and the body they form.

    body = decode(code)                      # bytecode/decode.py
    body.instructions[3].opname              # "LOAD_GLOBAL"
    body.instructions[3].argval, .arg        # "print", 1   (the low flag bit: a NULL is pushed too)
    code2 = assemble(body)                   # bytecode/assemble.py

``Instruction`` is compared by identity. What ``arg`` and ``argval`` hold:

| instruction | ``argval`` | ``arg`` |
|---|---|---|
| constants (LOAD_CONST, RETURN_CONST, KW_NAMES) | the constant itself | ignored |
| LOAD_GLOBAL | the name | 1: a NULL is pushed as well, as a call needs it; else 0 |
| LOAD_ATTR (3.12 on), LOAD_SUPER_ATTR | the name | 1: as a method; LOAD_SUPER_ATTR also 2: two-argument form |
| other names (STORE_ATTR, LOAD_METHOD, IMPORT_NAME ...) | the name | ignored |
| locals, cells and free variables | the variable's name | ignored |
| two locals at once (3.13 LOAD_FAST_LOAD_FAST ...) | a tuple of two names | ignored |
| jumps | None; see ``target`` | ignored |
| COMPARE_OP | the operator, "<" | the raw argument |
| BINARY_OP | the operator, "+" or "+=" | the raw argument |
| everything else | None | the raw argument |

A *slot* of the frame may hold a cell or a plain value at different times: LOAD_FAST of a slot that MAKE_CELL has
filled pushes the cell (that is how 3.13 loads closures, and how inlined comprehensions save an outer cell). Model a
frame as one dictionary from variable name to content, for locals, cells and free variables alike. In the rare frame
with two slots of one name the second one's name is a ``Slot``, a string with a text of its own.

Pseudo-instructions that the assembler understands and the decoder never gives:
LABEL (no code; a place to jump to) and JUMP (forward or backward, whichever is needed). Any jump may point in either
direction: the assembler picks the opcode, or goes round.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from types import CodeType
from typing import NamedTuple

from dynamo_capture.bytecode.errors import NO_SUCH_INSTRUCTION, UnsupportedBytecodeError

CO_OPTIMIZED = 0x1
CO_NEWLOCALS = 0x2
CO_VARARGS = 0x4
CO_VARKEYWORDS = 0x8
CO_NESTED = 0x10
CO_GENERATOR = 0x20
CO_COROUTINE = 0x80
CO_ITERABLE_COROUTINE = 0x100
CO_ASYNC_GENERATOR = 0x200
GENERATOR_FLAGS = CO_GENERATOR | CO_COROUTINE | CO_ITERABLE_COROUTINE | CO_ASYNC_GENERATOR


class Position(NamedTuple):
    """Where an instruction comes from: 1-based lines, 0-based columns in UTF-8 bytes; None where unknown."""

    line: int | None = None
    end_line: int | None = None
    column: int | None = None
    end_column: int | None = None


NOWHERE = Position()
"""The position of an instruction that belongs to no line."""


class Slot(str):
    """The unique name of a slot whose own ``name`` another slot of the same frame has too."""

    __slots__ = ("name",)
    name: str

    def __new__(cls, name: str, kind: str) -> Slot:
        slot = super().__new__(cls, f"{name}.{kind}")
        slot.name = name
        return slot


@dataclass(frozen=True, slots=True, eq=False)
class Handler:
    """An exception-table entry: on an exception, cut the stack to ``depth``, push the offset of the instruction that
    raised if ``push_lasti``, push the exception, go on at ``target``."""

    target: Instruction
    depth: int
    push_lasti: bool = False


@dataclass(slots=True, eq=False)
class Instruction:
    """One instruction, with its inline caches and EXTENDED_ARG prefixes folded away. ``offset`` is its byte offset
    in the code it was decoded from, -1 if it was not decoded."""

    opname: str
    arg: int = 0
    argval: object = None
    target: Instruction | None = None
    position: Position = NOWHERE
    handler: Handler | None = None
    offset: int = -1

    def __repr__(self) -> str:
        parts = [self.opname]
        if self.argval is not None:
            parts.append(repr(self.argval))
        elif self.arg:
            parts.append(str(self.arg))
        if self.target is not None:
            parts.append(f"-> {self.target.opname}@{self.target.offset}")
        return f"<{self.offset} {' '.join(parts)}>"


@dataclass(slots=True)
class CodeBody:
    """A function body ready for assembling: instructions and what the frame's slots are.

    ``varnames`` start with the arguments (positional, keyword-only, ``*args``, ``**kwargs``); an argument that is a
    cell is in ``varnames`` and ``cellvars``. Locals that the instructions use and ``varnames`` lacks are added when
    assembling. ``consts`` and ``names`` are seeds: they keep their index, others follow. The first constant is the
    docstring.
    """

    instructions: list[Instruction]
    name: str
    qualname: str
    filename: str
    first_line: int
    argcount: int = 0
    posonlyargcount: int = 0
    kwonlyargcount: int = 0
    flags: int = CO_OPTIMIZED | CO_NEWLOCALS
    varnames: list[str] = field(default_factory=list)
    cellvars: list[str] = field(default_factory=list)
    freevars: list[str] = field(default_factory=list)
    consts: tuple[object, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def argument_names(self) -> list[str]:
        """Names of all argument slots in slot order."""
        return self.varnames[: self.argument_slots]

    @property
    def argument_slots(self) -> int:
        """How many slots the caller fills."""
        stars = bool(self.flags & CO_VARARGS) + bool(self.flags & CO_VARKEYWORDS)
        return self.argcount + self.kwonlyargcount + stars

    @property
    def is_generator(self) -> bool:
        """Whether calling gives a generator, a coroutine or an asynchronous generator."""
        return bool(self.flags & GENERATOR_FLAGS)

    def clone(self) -> CodeBody:
        """A copy whose instructions are new objects with jumps and handlers among themselves."""
        return self.clone_with_map()[0]

    def clone_with_map(self) -> tuple[CodeBody, dict[Instruction, Instruction]]:
        """A copy, and which new instruction stands for which old one."""
        twins, instructions = clone_instructions(self.instructions)
        copy = CodeBody(
            instructions, self.name, self.qualname, self.filename, self.first_line, self.argcount,
            self.posonlyargcount, self.kwonlyargcount, self.flags, list(self.varnames), list(self.cellvars),
            list(self.freevars), self.consts, self.names,
        )  # fmt: skip
        return copy, twins

    def index_of_offset(self, offset: int) -> int:
        """The index of the instruction decoded from a byte offset; an offset inside an instruction counts as it."""
        found = -1
        for index, instruction in enumerate(self.instructions):
            if 0 <= instruction.offset <= offset:
                found = index
        if found < 0:
            raise UnsupportedBytecodeError(
                NO_SUCH_INSTRUCTION, f"no instruction at offset {offset} of {self.qualname}"
            )
        return found


def clone_instructions(
    instructions: Iterable[Instruction],
) -> tuple[dict[Instruction, Instruction], list[Instruction]]:
    """New instructions with jumps and handlers among themselves; those that point outside keep pointing there."""
    originals = list(instructions)
    twins = {
        old: Instruction(old.opname, old.arg, old.argval, None, old.position, None, old.offset)
        for old in originals
    }
    handlers: dict[Handler, Handler] = {}
    for old, new in twins.items():
        if old.target is not None:
            new.target = twins.get(old.target, old.target)
        if old.handler is not None:
            if old.handler not in handlers:
                target = twins.get(old.handler.target, old.handler.target)
                handlers[old.handler] = Handler(target, old.handler.depth, old.handler.push_lasti)
            new.handler = handlers[old.handler]
    return twins, [twins[old] for old in originals]


def is_plain_function(code: CodeType) -> bool:
    """Whether ``code`` is the body of an ordinary ``def`` or lambda: no generator, class body, module or ``exec``."""
    wanted = CO_OPTIMIZED | CO_NEWLOCALS
    return code.co_flags & wanted == wanted and not code.co_flags & GENERATOR_FLAGS
