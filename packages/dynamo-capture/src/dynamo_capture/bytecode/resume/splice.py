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
that called it (``_eval_frame.rest`` and ``go_on``). A loop that breaks in every round then needs no deeper stack
than one that does not, and what a round held is free in the next. Give ``tail=resumes.is_resume_function(code)``.
Values move: once a resume function has started, neither the frame that handed over nor the call refers to its
arguments, so that an object that it drops dies there, as it would have in the original.

The rest of the original that can still be reached (handlers, say) stays in the replacement and runs uncaptured.

    replacement = splice_call(body, prologue, index=i, exit=instructions)

is for a frame in the middle of call i: ``prologue`` leaves the stack below the call and on it something that takes no
arguments; that is called under the handlers of i, and ``exit`` runs with its result. ``cut(body, exits)`` only cuts
exits, for a body that starts as it does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from dynamo_capture import _eval_frame
from dynamo_capture.bytecode.control_flow import past_loop_end, without_unreachable
from dynamo_capture.bytecode.emit import Emitter, function_prologue, start_of
from dynamo_capture.bytecode.instruction import CodeBody, Handler, Instruction
from dynamo_capture.bytecode.resume.analysis import UNBOUND, Parameter
from dynamo_capture.bytecode.resume.code import ResumePlan
from dynamo_capture.bytecode.resume.method_loads import load_pair, open_at

_EXIT_CALLEE = ".exit_callee"


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
    target = twins[body.instructions[past_loop_end(body.instructions, enter)]]
    start = [*function_prologue(body.cellvars, body.freevars, start=start_of(body)), *prologue]
    start.append(Instruction("JUMP", target=target, position=target.position))
    copy.instructions = without_unreachable([*start, *_with_exits(body, twins, exits)])
    return copy


def cut(body: CodeBody, exits: Mapping[int, Sequence[Instruction]]) -> CodeBody:
    """A copy of ``body`` with exits cut into it."""
    copy, twins = body.clone_with_map()
    copy.instructions = without_unreachable(_with_exits(body, twins, exits))
    return copy


def splice_call(
    body: CodeBody, prologue: Sequence[Instruction], index: int, exit: Sequence[Instruction]
) -> CodeBody:
    """The replacement of a body in the middle of call ``index``, unassembled; see the module's text."""
    copy, twins = body.clone_with_map()
    call = twins[body.instructions[index]]
    emitter = Emitter(call.position, call.handler)
    emitter.call_values(0)
    begin = function_prologue(body.cellvars, body.freevars, start=start_of(body))
    start = [*begin, *prologue, *emitter.instructions, *exit]
    copy.instructions = without_unreachable([*start, *copy.instructions])
    return copy


def _with_exits(
    body: CodeBody,
    twins: Mapping[Instruction, Instruction],
    exits: Mapping[int, Sequence[Instruction]],
) -> list[Instruction]:
    """The twins of a body's instructions, led through exits."""
    originals = body.instructions
    exits = {past_loop_end(originals, index): written for index, written in exits.items()}
    pairs = open_at(body, exits)
    doors = {twins[originals[index]]: Instruction("LABEL") for index in exits}
    instructions: list[Instruction] = []
    for index, original in enumerate(originals):
        if index in exits:
            instructions += [doors[twins[original]], *exits[index]]
        instructions.append(twins[original])
        if index in pairs:
            instructions += load_pair(twins[original])
    _redirect(instructions, doors)
    return instructions


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
    replaced: Collection[str] = (),
    tail: bool = False,
    via: Mapping[tuple[Any, ...], Any] | None = None,
) -> None:
    """Call a resume function with the stack and locals of the running frame, and return its result.

    The stack is as ``plan.stack`` says (with the callee on top, if the plan calls one) and becomes empty. ``tail``: the
    code is a resume function itself. ``via[function, *arguments]`` is the result instead. ``replaced`` are
    locals that the rest gives another value or deletes: those that are not passed on are dropped, since a traceback may
    keep this frame, and with it what the program has let go.
    """
    if plan.calls:
        emitter.store_fast(_EXIT_CALLEE)
    for depth in reversed(range(len(plan.stack))):
        emitter.store_fast(f".exit{depth}")
    for name in sorted(plan.maybe):
        _bind(emitter, name)
    if via is None and not tail:
        emitter.begin_call()
        emitter.load_const(_eval_frame.go_on)
        emitter.end_callable()
    emitter.load_const(via or _eval_frame.REST)
    if function is None:
        emitter.make_function(plan.code, closure=plan.freevars)
    else:
        emitter.load_const(function)
    for parameter in plan.parameters:
        _load_parameter(emitter, parameter)
    for parameter in plan.parameters:
        if parameter.kind not in ("cell", "place"):
            emitter.delete_fast(_variable(parameter))
    passed = {parameter.which for parameter in plan.parameters if parameter.kind == "local"}
    for name in replaced:
        if name not in passed:
            _drop(emitter, name)
    emitter.build_tuple(1 + len(plan.parameters))
    emitter.binary_subscr()
    if via is None and not tail:
        emitter.call(1)
    emitter.return_value()


def _drop(emitter: Emitter, name: str) -> None:
    """Unbind a local that may be unbound."""
    emitter.load_const(None)
    emitter.store_fast(name)
    emitter.delete_fast(name)


def _bind(emitter: Emitter, name: str) -> None:
    """Make a local that may be unbound hold UNBOUND then; the stack is empty."""
    absent, done = emitter.label(), emitter.label()
    with emitter.protected(absent, 0):
        emitter.load_fast(name)
    emitter.pop_top()
    emitter.jump(done)
    emitter.place(absent)
    emitter.pop_top()
    emitter.load_const(UNBOUND)
    emitter.store_fast(name)
    emitter.place(done)


def _load_parameter(emitter: Emitter, parameter: Parameter) -> None:
    if parameter.kind == "cell":
        emitter.load_deref(str(parameter.which))
    elif parameter.kind == "place":
        emitter.load_const(None)
    else:
        emitter.load_fast(_variable(parameter))


def _variable(parameter: Parameter) -> str:
    """The local of the frame that hands over in which a parameter's value is."""
    match parameter.kind:
        case "stack":
            return f".exit{parameter.which}"
        case "callee":
            return _EXIT_CALLEE
    return str(parameter.which)
