"""What a resume function does first: it calls, or raises, what it is given, under the handlers of its place."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType
from typing import Final

from dynamo_capture.bytecode.emit import Emitter
from dynamo_capture.bytecode.instruction import Instruction
from dynamo_capture.runtime.suspension import End, raise_within

CALLEE_NAME: Final = ".callee"
RAISED_NAME: Final = ".raised"
"""The arguments with what is called, and with what is raised."""


def raise_first(place: Instruction, take: Callable[[], BaseException] | None) -> list[Instruction]:
    """Raises the argument, or what ``take`` gives, where the instruction ``place`` stands; what handles it goes on with
    the rest."""
    emitter = Emitter(place.position, place.handler)
    _load_raised(emitter, take)
    emitter.raise_value()
    return emitter.instructions


def raise_in_callee(
    place: Instruction,
    raising: Callable[[CodeType], CodeType | None],
    take: Callable[[], BaseException] | None,
) -> list[Instruction]:
    """Puts what raises within the callee in the callee's place."""
    emitter = Emitter(place.position, place.handler)
    emitter.begin_call()
    emitter.load_const(functools.partial)
    emitter.end_callable()
    emitter.load_const(raise_within)
    emitter.load_const(raising)
    emitter.emit("LOAD_FAST", argval=CALLEE_NAME)
    _load_raised(emitter, take)
    emitter.call(4)
    emitter.emit("STORE_FAST", argval=CALLEE_NAME)
    return emitter.instructions


def _load_raised(emitter: Emitter, take: Callable[[], BaseException] | None) -> None:
    if take is None:
        emitter.emit("LOAD_FAST", argval=RAISED_NAME)
        emitter.delete_fast(RAISED_NAME)
        return
    emitter.begin_call()
    emitter.load_const(take)
    emitter.end_callable()
    emitter.call(0)


def unless_ended(call: list[Instruction], end: Instruction) -> list[Instruction]:
    """The call of what answers a FOR_ITER: ``End`` leads behind the loop."""
    *calling, onwards = call
    emitter = Emitter(onwards.position)
    goes_on = emitter.label()
    emitter.copy()
    emitter.load_const(End)
    emitter.is_op()
    emitter.pop_jump_if_false(goes_on)
    emitter.pop_top()
    emitter.pop_top()
    emitter.jump(end)
    emitter.place(goes_on)
    return [*calling, *emitter.instructions, onwards]


def call_first(place: Instruction, following: Instruction, kept: bool) -> list[Instruction]:
    """Calls the callee as ``place``, a call or what a frame answers, would, and go on where that goes on."""
    emitter = Emitter(place.position, place.handler)
    emitter.begin_call()
    emitter.emit("LOAD_FAST", argval=CALLEE_NAME)
    emitter.delete_fast(CALLEE_NAME)
    emitter.end_callable()
    emitter.call(0)
    if not kept:
        emitter.pop_top()
    emitter.jump(following)
    return emitter.instructions
