"""Emitting instructions without knowing the CPython version.

    e = Emitter()                     # or Emitter(Position(line=3)): given to every instruction emitted
    e.load_global_callable("print")   # pushes what a call needs, NULL included, in the version's order
    e.load_const(42)
    e.call(1)
    e.pop_top()
    done = e.label()                  # a LABEL not yet placed
    e.load_fast("x"); e.pop_jump_if_true(done)     # tests the truth of any object
    e.place(done)
    e.load_const(None); e.return_value()
    body = body_like(decode(code), [*function_prologue(cellvars, freevars), *e.instructions])

Calls: ``begin_call()``, push the callable, ``end_callable()``, push the arguments, ``call(n)``, or ``call(n,
("kw",))`` when the last arguments are keywords (``n`` counts them); ``load_method(name)`` replaces the object on top
by what ``call`` needs. ``call_function_ex(kwargs)`` stands after the same prologue, a tuple and, if asked, a dict.
``call_values(n)`` calls when the stack is ``callable, a1 .. an`` without a NULL.

Comments give the stack, top last: ``a, b -> c``.
"""

from __future__ import annotations

import dis
import opcode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import CodeType
from typing import Final

from dynamo_capture.bytecode.instruction import NOWHERE, CodeBody, Handler, Instruction, Position
from dynamo_capture.bytecode.versions.running import RULES

_INTRINSIC_UNARY_POSITIVE = 5
_INTRINSIC_LIST_TO_TUPLE = 6
_BINARY = {symbol: number for number, (_, symbol) in enumerate(opcode._nb_ops)}  # type: ignore[attr-defined]


class Emitter:
    """A growing list of instructions. ``position`` and ``handler`` are given to each as it is emitted."""

    __slots__ = ("handler", "instructions", "position")

    def __init__(self, position: Position = NOWHERE, handler: Handler | None = None) -> None:
        self.instructions: list[Instruction] = []
        self.position = position
        self.handler = handler

    def emit(
        self, opname: str, arg: int = 0, argval: object = None, target: Instruction | None = None
    ) -> Instruction:
        """Append one instruction as named; the others are written with this."""
        instruction = Instruction(opname, arg, argval, target, self.position, self.handler)
        self.instructions.append(instruction)
        return instruction

    def label(self) -> Instruction:
        """A place to jump to, not yet placed."""
        return Instruction("LABEL")

    def place(self, label: Instruction) -> None:
        """The place is here."""
        self.instructions.append(label)

    @contextmanager
    def protected(self, target: Instruction, depth: int, *, push_lasti: bool = False) -> Iterator[None]:
        """Instructions emitted in the block are handled at ``target`` with the stack cut to ``depth``."""
        outer, self.handler = self.handler, Handler(target, depth, push_lasti)
        try:
            yield
        finally:
            self.handler = outer

    # --- constants and variables ---

    def load_const(self, value: object) -> None:
        """-> value"""
        self.emit("LOAD_CONST", argval=value)

    def load_fast(self, name: str) -> None:
        """-> value; UnboundLocalError if the local is unbound."""
        self.emit("LOAD_FAST" if RULES.version < (3, 12) else "LOAD_FAST_CHECK", argval=name)

    def store_fast(self, name: str) -> None:
        """value ->; a NULL on the stack leaves the local unbound."""
        self.emit("STORE_FAST", argval=name)

    def delete_fast(self, name: str) -> None:
        """->; UnboundLocalError if the local is unbound."""
        self.emit("DELETE_FAST", argval=name)

    def load_deref(self, name: str) -> None:
        """-> content of the cell; NameError if it is empty."""
        self.emit("LOAD_DEREF", argval=name)

    def store_deref(self, name: str) -> None:
        """value ->"""
        self.emit("STORE_DEREF", argval=name)

    def delete_deref(self, name: str) -> None:
        """Empty the cell."""
        self.emit("DELETE_DEREF", argval=name)

    def load_closure(self, name: str) -> None:
        """-> the cell itself, of a cell or free variable"""
        self.emit("LOAD_CLOSURE" if RULES.has_load_closure else "LOAD_FAST", argval=name)

    def make_cell(self, name: str) -> None:
        """Wrap what the slot holds (or nothing) in a new cell."""
        self.emit("MAKE_CELL", argval=name)

    def load_global(self, name: str) -> None:
        """-> value of a global or builtin"""
        self.emit("LOAD_GLOBAL", argval=name)

    def load_global_callable(self, name: str) -> None:
        """-> callable and NULL as ``call`` needs them: begin_call, load_global, end_callable in one."""
        self.emit("LOAD_GLOBAL", 1, name)

    def store_global(self, name: str) -> None:
        """value ->"""
        self.emit("STORE_GLOBAL", argval=name)

    def delete_global(self, name: str) -> None:
        """Delete a global."""
        self.emit("DELETE_GLOBAL", argval=name)

    # --- attributes, items, imports ---

    def load_attr(self, name: str) -> None:
        """owner -> value"""
        self.emit("LOAD_ATTR", argval=name)

    def store_attr(self, name: str) -> None:
        """value, owner ->"""
        self.emit("STORE_ATTR", argval=name)

    def delete_attr(self, name: str) -> None:
        """owner ->"""
        self.emit("DELETE_ATTR", argval=name)

    def binary_subscr(self) -> None:
        """container, key -> item"""
        self.emit("BINARY_SUBSCR")

    def store_subscr(self) -> None:
        """value, container, key ->"""
        self.emit("STORE_SUBSCR")

    def delete_subscr(self) -> None:
        """container, key ->"""
        self.emit("DELETE_SUBSCR")

    # --- the stack ---

    def pop_top(self) -> None:
        """value ->"""
        self.emit("POP_TOP")

    def push_null(self) -> None:
        """-> NULL"""
        self.emit("PUSH_NULL")

    def copy(self, depth: int = 1) -> None:
        """Push a copy of the value ``depth`` from the top (1: the top)."""
        self.emit("COPY", depth)

    def swap(self, depth: int = 2) -> None:
        """Exchange the top with the value ``depth`` from the top."""
        if depth > 1:
            self.emit("SWAP", depth)

    def rotate(self, count: int) -> None:
        """a, .., y, z -> z, a, .., y: the top goes ``count - 1`` places down."""
        for depth in range(count, 1, -1):
            self.emit("SWAP", depth)

    # --- operators ---

    def binary_op(self, symbol: str) -> None:
        """left, right -> result; ``symbol`` as written, "+" or "+="."""
        self.emit("BINARY_OP", _BINARY[symbol], symbol)

    def compare_op(self, symbol: str) -> None:
        """left, right -> result of "<", "<=", "==", "!=", ">" or ">=", whatever its type"""
        arg = dis.cmp_op.index(symbol) << RULES.compare_shift | RULES.compare_masks.get(symbol, 0)
        self.emit("COMPARE_OP", arg, symbol)

    def is_op(self, invert: bool = False) -> None:
        """left, right -> bool"""
        self.emit("IS_OP", int(invert))

    def unary_negative(self) -> None:
        """value -> -value"""
        self.emit("UNARY_NEGATIVE")

    def unary_positive(self) -> None:
        """value -> +value"""
        if "UNARY_POSITIVE" in dis.opmap:
            self.emit("UNARY_POSITIVE")
        else:
            self.emit("CALL_INTRINSIC_1", _INTRINSIC_UNARY_POSITIVE)

    def unary_not(self) -> None:
        """value -> bool"""
        self._to_bool()
        self.emit("UNARY_NOT")

    # --- building and unpacking ---

    def build_tuple(self, count: int) -> None:
        """a1 .. an -> tuple"""
        self.emit("BUILD_TUPLE", count)

    def build_list(self, count: int) -> None:
        """a1 .. an -> list"""
        self.emit("BUILD_LIST", count)

    def build_set(self, count: int) -> None:
        """a1 .. an -> set"""
        self.emit("BUILD_SET", count)

    def build_map(self, count: int) -> None:
        """k1, v1 .. kn, vn -> dict"""
        self.emit("BUILD_MAP", count)

    def build_slice(self, count: int = 2) -> None:
        """start, stop(, step) -> slice"""
        self.emit("BUILD_SLICE", count)

    def list_to_tuple(self) -> None:
        """list -> tuple"""
        if "LIST_TO_TUPLE" in dis.opmap:
            self.emit("LIST_TO_TUPLE")
        else:
            self.emit("CALL_INTRINSIC_1", _INTRINSIC_LIST_TO_TUPLE)

    def list_append(self, depth: int = 1) -> None:
        """.., list, .., value -> .., list, ..; the list is ``depth`` from the top once the value is gone"""
        self.emit("LIST_APPEND", depth)

    def list_extend(self, depth: int = 1) -> None:
        """As ``list_append``, with the items of an iterable."""
        self.emit("LIST_EXTEND", depth)

    def dict_update(self, depth: int = 1) -> None:
        """As ``list_append``, for a dict, with the items of a mapping."""
        self.emit("DICT_UPDATE", depth)

    # --- control ---

    def jump(self, target: Instruction) -> None:
        """Go to a place before or after this one."""
        self.emit("JUMP", target=target)

    def pop_jump_if_true(self, target: Instruction) -> None:
        """value ->; any object's truth is asked"""
        self._to_bool()
        self.emit("POP_JUMP_IF_TRUE", target=target)

    def pop_jump_if_false(self, target: Instruction) -> None:
        """value ->; any object's truth is asked"""
        self._to_bool()
        self.emit("POP_JUMP_IF_FALSE", target=target)

    def pop_jump_if_none(self, target: Instruction) -> None:
        """value ->"""
        self.emit("POP_JUMP_IF_NONE", target=target)

    def get_iter(self) -> None:
        """iterable -> iterator"""
        self.emit("GET_ITER")

    def for_iter(self, done: Instruction) -> None:
        """iterator -> iterator, item; at the end go to ``done``, to be placed by ``place_loop_end``"""
        self.emit("FOR_ITER", target=done)

    def place_loop_end(self, done: Instruction) -> None:
        """Where an exhausted loop goes on, without the iterator."""
        self.place(done)
        for opname in RULES.closing_for:
            self.emit(opname)

    def return_value(self) -> None:
        """value ->"""
        self.emit("RETURN_VALUE")

    def raise_value(self, count: int = 1) -> None:
        """() | exception | exception, cause ->: ``raise``, ``raise e``, ``raise e from c``"""
        self.emit("RAISE_VARARGS", count)

    # --- calls and functions ---

    def begin_call(self) -> None:
        """Before the callable is pushed."""
        if RULES.null_before_callable:
            self.push_null()

    def end_callable(self) -> None:
        """After the callable is pushed."""
        if not RULES.null_before_callable:
            self.push_null()

    def load_method(self, name: str) -> None:
        """owner -> method and self as ``call`` needs them"""
        if RULES.has_load_method:
            self.emit("LOAD_METHOD", argval=name)
        else:
            self.emit("LOAD_ATTR", 1, name)

    def call(self, count: int, keywords: Sequence[str] = ()) -> None:
        """callable prologue, a1 .. an -> result; the last ``len(keywords)`` arguments are keyword arguments"""
        if keywords and RULES.has_call_kw:
            self.load_const(tuple(keywords))
            self.emit("CALL_KW", count)
            return
        if keywords:
            self.emit("KW_NAMES", argval=tuple(keywords))
        if RULES.has_precall:
            self.emit("PRECALL", count)
        self.emit("CALL", count)

    def call_with_self(self, count: int) -> None:
        """callable, a1 .. an -> result, n > 0; the first argument stands where a method has its self"""
        self.call(count - 1)

    def call_function_ex(self, *, keywords: bool = False) -> None:
        """callable prologue, tuple(, dict) -> result"""
        self.emit("CALL_FUNCTION_EX", int(keywords))

    def call_values(self, count: int) -> None:
        """callable, a1 .. an -> result"""
        self.build_tuple(count)
        self.push_null()
        if RULES.null_before_callable:
            self.swap(3)
        self.swap(2)
        self.call_function_ex()

    def make_function(
        self,
        code: CodeType,
        *,
        closure: Sequence[str] = (),
        defaults: bool = False,
        keyword_defaults: bool = False,
    ) -> None:
        """(defaults tuple)(, dict of keyword-only defaults) -> function whose closure is this frame's cells so
        named"""
        flags = int(defaults) | 2 * int(keyword_defaults) | (8 if closure else 0)
        for name in closure:
            self.load_closure(name)
        if closure:
            self.build_tuple(len(closure))
        self.load_const(code)
        if not RULES.has_function_attributes:
            self.emit("MAKE_FUNCTION", flags)
            return
        self.emit("MAKE_FUNCTION")
        for flag in (8, 2, 1):
            if flags & flag:
                self.emit("SET_FUNCTION_ATTRIBUTE", flag)

    def _to_bool(self) -> None:
        if RULES.has_to_bool:
            self.emit("TO_BOOL")


STARTS: Final = 0
"""RESUME where a function starts: the interpreter looks for signals there."""
STARTS_UNINTERRUPTED: Final = 2
"""The same without: an interrupt arrives later (PEP 626's RESUME after ``yield from``, of the same effect)."""


def function_prologue(
    cellvars: Sequence[str], freevars: Sequence[str], position: Position = NOWHERE, start: int = STARTS
) -> list[Instruction]:
    """What a plain function starts with: its free variables and cells put in place, then RESUME ``start``."""
    emitter = Emitter(position)
    if freevars:
        emitter.emit("COPY_FREE_VARS", len(freevars))
    for name in cellvars:
        emitter.make_cell(name)
    emitter.emit("RESUME", start)
    return emitter.instructions


def start_of(body: CodeBody) -> int:
    """``start`` of a function's prologue."""
    return next((one.arg for one in body.instructions if one.opname == "RESUME"), STARTS)


def body_like(body: CodeBody, instructions: list[Instruction]) -> CodeBody:
    """A body with another's name, file, arguments, cells and free variables, and instructions of its own."""
    return CodeBody(
        instructions, body.name, body.qualname, body.filename, body.first_line, body.argcount, body.posonlyargcount,
        body.kwonlyargcount, body.flags, body.argument_names, list(body.cellvars), list(body.freevars),
        body.consts[:1],
    )  # fmt: skip
