"""Replacement code at a graph break: a prologue, then the original body from one instruction on, with exits cut into
it.

    replacement = splice(body, prologue, enter=i, exits={j: instructions})

is a copy of ``body`` in which control starts with ``prologue`` (which leaves stack, locals and cells as they are
before instruction i), goes on at instruction i under the original's exception handlers, and wherever it would come
to instruction j runs ``exits[j]`` instead, which no handler protects. So the broken instruction itself runs as it
always did, inside the user's ``try`` and ``with`` blocks, and an exit hands over to a resume function:

    e = Emitter(position)
    emit_resume_call(e, plan)                   # makes the function at run time, over this frame's cells
    emit_resume_call(e, plan, function=f)       # or calls an existing one (only where plan.freevars is empty)
    emit_resume_call(e, plan, tail=True)        # inside a resume function: returns, and its caller makes the call

Resume functions are called by nobody but such exits, so that one of them may leave the call of the next to the exit
that called it (``_eval_frame.rest`` and ``call_rest``). A loop that breaks in every round then needs no deeper stack
than one that does not, and what a round held is free in the next. Give ``tail=resumes.is_resume_function(code)``.

The rest of the original that can still be reached (handlers, say) stays in the replacement and runs uncaptured.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from dynamo_capture import _eval_frame
from dynamo_capture.bytecode.control_flow import past_loop_end, without_unreachable
from dynamo_capture.bytecode.emit import Emitter, function_prologue
from dynamo_capture.bytecode.instruction import CodeBody, Handler, Instruction
from dynamo_capture.bytecode.resume_code import NULL, Parameter, ResumePlan


def splice(
    body: CodeBody,
    prologue: Sequence[Instruction],
    enter: int,
    exits: Mapping[int, Sequence[Instruction]],
) -> CodeBody:
    """The replacement body, unassembled. ``enter`` and the keys of ``exits`` index ``body.instructions``.

    Each exit ends by returning, raising or jumping. ``prologue`` must not start with MAKE_CELL, COPY_FREE_VARS or
    RESUME: those are put before it.
    """
    copy, twins = body.clone_with_map()
    originals = body.instructions
    enter = past_loop_end(originals, enter)
    exits = {past_loop_end(originals, index): written for index, written in exits.items()}
    doors = {twins[originals[index]]: Instruction("LABEL") for index in exits}
    instructions = [*function_prologue(body.cellvars, body.freevars), *prologue]
    instructions.append(
        Instruction("JUMP", target=twins[originals[enter]], position=originals[enter].position)
    )
    start = len(instructions)
    for index, original in enumerate(originals):
        if index in exits:
            instructions += [doors[twins[original]], *exits[index]]
        instructions.append(twins[original])
    _redirect(instructions[start:], doors)
    copy.instructions = without_unreachable(instructions)
    return copy


def _redirect(instructions: list[Instruction], doors: Mapping[Instruction, Instruction]) -> None:
    """Lead jumps and handlers to an instruction that has a door through the door."""
    handlers: dict[Handler, Handler] = {}
    for instruction in instructions:
        if instruction.target is not None and instruction.target in doors:
            instruction.target = doors[instruction.target]
        old = instruction.handler
        if old is not None and old.target in doors:
            handlers.setdefault(old, Handler(doors[old.target], old.depth, old.push_lasti))
            instruction.handler = handlers[old]


def emit_resume_call(
    emitter: Emitter,
    plan: ResumePlan,
    *,
    function: Callable[..., Any] | None = None,
    forget: Collection[str] = (),
    tail: bool = False,
) -> None:
    """Call a resume function with the stack and locals of the running frame, and return its result.

    The stack is as ``plan.stack`` says and becomes empty. ``forget`` names locals to clear first, so that what they
    hold does not stay alive for as long as the resume function runs. ``tail``: the code is a resume function itself.
    """
    for depth in reversed(range(len(plan.stack))):
        emitter.store_fast(f".exit{depth}")
    for name in forget:
        emitter.load_const(None)
        emitter.store_fast(name)
    emitter.begin_call()
    emitter.load_const(_eval_frame.rest if tail else _eval_frame.call_rest)
    emitter.end_callable()
    if function is None:
        emitter.make_function(plan.code, closure=plan.freevars)
    else:
        emitter.load_const(function)
    for parameter in plan.parameters:
        _load_parameter(emitter, parameter)
    for depth, slot in enumerate(plan.stack):
        if slot is not NULL:
            emitter.delete_fast(f".exit{depth}")
    emitter.call(1 + len(plan.parameters))
    emitter.return_value()


def _load_parameter(emitter: Emitter, parameter: Parameter) -> None:
    match parameter.kind:
        case "stack":
            emitter.load_fast(f".exit{parameter.which}")
        case "local":
            emitter.load_fast(str(parameter.which))
        case "cell":
            emitter.load_deref(str(parameter.which))
