"""Bridges: the code in which inlined frames live while an instruction of the innermost one runs in Python.

A bridge is the frame's own body, entered in the middle. The innermost one runs the instruction, under the frame's
handlers; then it returns the frame's rest as a ``Suspended``. A caller's bridge calls the next one where the call
stood, and returns its own rest, which begins with what it got. See docs/decisions/0005.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import CodeType
from typing import Any

from dynamo_capture import _eval_frame
from dynamo_capture.bytecode import CodeBody, Instruction, assemble
from dynamo_capture.bytecode.control_flow import past_loop_end
from dynamo_capture.bytecode.decoded import decoded
from dynamo_capture.bytecode.emit import Emitter
from dynamo_capture.bytecode.liveness import reads_and_writes
from dynamo_capture.bytecode.loops import region_from
from dynamo_capture.bytecode.resume.analysis import (
    NULL,
    VALUE,
    Parameter,
    StackSlot,
    after_loop,
    gives_result,
    landing_of,
)
from dynamo_capture.bytecode.resume.code import ResumeCodes, ResumePlan
from dynamo_capture.bytecode.resume.method_loads import loads_method, stack_after
from dynamo_capture.bytecode.resume.splice import cut, emit_resume_call
from dynamo_capture.codegen.held_objects import FrameLocals, frame_locals
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.left_functions import left_loop
from dynamo_capture.interpreter.result_frames import answer
from dynamo_capture.runtime.suspension import End
from dynamo_capture.values import NONE, Const, FunctionValue, NullValue, PartialValue, RestValue, Value

_RESULT = ".call_result"
_RETURNS = ("RETURN_VALUE", "RETURN_CONST")


def bridge(frames: Sequence[Frame], resumes: ResumeCodes) -> Value:
    """What the outermost frame, ``frames[0]``, calls where its call stood, with nothing.

    The last frame is before the instruction that runs in Python, the others are in the middle of a call.
    """
    given = frames[-1].stack
    made = _result_for(frames[-2], _innermost(frames[-1], resumes))
    for outer, frame in zip(frames[-3::-1], frames[-2:0:-1], strict=True):
        made = _result_for(outer, _caller(frame, made, given, resumes))
    return made


def _result_for(caller: Frame, callee: Value) -> Value:
    """``callee`` as the caller sees it: with what Python makes of the frame's answer."""
    found = answer(caller, caller.steps[caller.next - 1])
    if found.finish is None:
        return callee
    return PartialValue.of(Const(found.finish), [callee, *found.arguments])


def _innermost(frame: Frame, resumes: ResumeCodes) -> Value:
    body = decoded(frame.code).body
    variables = frame_locals(frame, frame.stack)
    first = first_of_call(body, frame.next)
    plan = resumes.make(frame.code, first, slots(frame), unbound=variables.unbound, keep=variables.keep)
    index = resumes.index_of(plan, frame.code, frame.next)
    head = left_loop(frame, frame.next)
    loop = None if head is None else resumes.index_of(plan, frame.code, head)
    exits = exits_after(
        plan.code, index, slots(frame), variables, resumes, via=_eval_frame.SUSPENDED, tail=False, loop=loop
    )
    return _call(frame, plan, assemble(cut(decoded(plan.code).body, exits)), None)


def _caller(frame: Frame, callee: Value, given: Sequence[Value], resumes: ResumeCodes) -> Value:
    call = frame.next - 1
    variables = frame_locals(frame, given)
    plan = resumes.make(
        frame.code, call, slots(frame), unbound=variables.unbound, keep=variables.keep, callee=True
    )
    rest = decoded(plan.code).body
    index = resumes.index_of(plan, frame.code, call)
    written = exit_of_call(frame, call, variables, resumes, via=_eval_frame.SUSPENDED, tail=False)
    return _call(frame, plan, assemble(cut(rest, {landing_of(rest, index): written})), callee)


def _call(frame: Frame, plan: ResumePlan, code: CodeType, callee: Value | None) -> Value:
    """The call of the bridge ``code``, which takes what ``plan`` takes. Its arguments move into its frame, which lets
    go of them as the frame does that it stands for."""
    _eval_frame.set_skip(code, 1)
    function = FunctionValue(code, frame.globals)
    function.closure = [frame.cell(name) for name in plan.freevars]
    return RestValue(function, [argument(frame, parameter, callee) for parameter in plan.parameters])


def argument(frame: Frame, parameter: Parameter, callee: Value | None) -> Value:
    """What a resume function takes for a parameter, ``frame`` being where it stands."""
    match parameter:
        case Parameter("stack", int(depth)):
            return frame.stack[depth]
        case Parameter("local", str(name)):
            return frame.variables[name]
        case Parameter("cell", str(name)):
            content = frame.cell(name).content
            assert content is not None, name
            return content
        case Parameter("place"):
            return NONE
    assert callee is not None
    return callee


def slots(frame: Frame) -> list[StackSlot]:
    """What the places on a frame's stack hold."""
    return [NULL if type(value) is NullValue else VALUE for value in frame.stack]


def exits_after(
    code: CodeType,
    index: int,
    before: Sequence[StackSlot],
    variables: FrameLocals,
    resumes: ResumeCodes,
    *,
    tail: bool,
    via: Mapping[tuple[Any, ...], Any] | None = None,
    loop: int | None = None,
) -> dict[int, list[Instruction]]:
    """Where control goes after instruction ``index``, which runs in Python: into resume functions. ``before`` is the
    stack before it, ``variables`` the locals. ``loop``: the FOR_ITER of a loop that begins there, and runs in Python as
    a whole."""
    facts = decoded(code)
    body, flow = facts.body, facts.flow
    region = frozenset({index}) if loop is None else region_from(flow, index, loop)
    ahead = (found for one in sorted(region) for found in flow.successors[one])
    successors = list(
        dict.fromkeys(past_loop_end(body.instructions, found) for found in ahead if found not in region)
    )
    handlers = {handler for one in region if (handler := flow.handlers[one]) is not None}
    passed = flow.reachable(handlers, [*successors, *region])
    if loop is not None:
        passed |= region
    broken = body.instructions[index]
    if broken.opname == "DELETE_FAST":
        variables = replace(variables, unbound=(*variables.unbound, str(broken.argval)))
    if loads_method(broken):
        kept: Sequence[StackSlot] = stack_after(broken, before)
    else:
        kept = before[: len(before) - consumed_by_call(broken)]
    return {
        at: resume_at(code, at, kept, variables, passed, resumes, tail=tail, via=via)
        for at in successors
        if body.instructions[at].opname not in _RETURNS
    }


def resume_at(
    code: CodeType,
    index: int,
    kept: Sequence[StackSlot],
    variables: FrameLocals,
    passed: Collection[int],
    resumes: ResumeCodes,
    *,
    tail: bool,
    via: Mapping[tuple[Any, ...], Any] | None = None,
) -> list[Instruction]:
    """The exit before instruction ``index`` into its resume function. ``kept`` is what may still be on the stack,
    ``variables`` the locals before the ``passed`` instructions, some of which have run. What those store is passed on
    though nothing may read it: nobody knows what it holds."""
    facts = decoded(code)
    body, depth = facts.body, facts.depths[index]
    stored, deleted = _touched_by(body, passed)
    assert depth is not None
    known = min(len(kept), depth)
    stack = [*kept[:known], *[VALUE] * (depth - known)]
    unbound = [name for name in variables.unbound if name not in stored]
    perhaps = {name for name in body.varnames if name in (stored if name in variables.unbound else deleted)}
    perhaps |= stored.difference(
        facts.live[index], variables.keep
    )  # what nothing reads was not put in its place
    perhaps |= stored & _put_away_in(body)
    keep = stored.union(variables.keep)
    plan = resumes.make(code, index, stack, unbound=unbound, maybe=perhaps, keep=keep)
    emitter = Emitter(body.instructions[index].position)
    emit_resume_call(emitter, plan, replaced=_replaced(code, index, unbound), tail=tail, via=via)
    return emitter.instructions


def _replaced(code: CodeType, index: int, unbound: Collection[str]) -> list[str]:
    """Locals that may hold a value, and that the rest of the code, from ``index`` on, gives another one or deletes."""
    facts = decoded(code)
    stored, deleted = _touched_by(facts.body, facts.flow.reachable((index,), ()))
    found = (stored | deleted).difference(unbound, facts.body.cellvars)
    return [name for name in facts.body.varnames if name in found]


def _touched_by(body: CodeBody, passed: Collection[int]) -> tuple[set[str], set[str]]:
    """Locals that these instructions store and delete."""
    stored: set[str] = set()
    deleted: set[str] = set()
    for index in passed:
        instruction = body.instructions[index]
        (deleted if instruction.opname == "DELETE_FAST" else stored).update(reads_and_writes(instruction)[1])
    return stored, deleted


def _put_away_in(body: CodeBody) -> set[str]:
    """Locals that a comprehension puts away and back (from CPython 3.12 on): unbound after it if they were before."""
    return {str(one.argval) for one in body.instructions if one.opname == "LOAD_FAST_AND_CLEAR"}


def exit_of_call(
    frame: Frame,
    call: int,
    variables: FrameLocals,
    resumes: ResumeCodes,
    *,
    tail: bool,
    via: Mapping[tuple[Any, ...], Any] | None = None,
) -> list[Instruction]:
    """What follows on a bridge's call, its result being on the stack: the rest of the frame, with the suspended rest of
    the callee or the value that it returned."""
    facts = decoded(frame.code)
    body = facts.body
    landing = landing_of(body, call)
    following = body.instructions[landing]
    emitter = Emitter(following.position)
    plain = emitter.label()
    emitter.store_fast(_RESULT)
    emitter.load_const(_eval_frame.IS_SUSPENDED)
    emitter.load_fast(_RESULT)
    emitter.binary_subscr()
    emitter.pop_jump_if_false(plain)
    make = partial(resumes.make, frame.code, unbound=variables.unbound, keep=variables.keep)
    replaced = _replaced(frame.code, call, variables.unbound)
    hand_over = partial(emit_resume_call, replaced=replaced, tail=tail, via=via)
    _take_result(emitter)
    hand_over(emitter, make(call, slots(frame), callee=True))
    emitter.place(plain)
    stack = slots(frame)
    if body.instructions[call].opname == "FOR_ITER":
        _leave_loop(emitter, frame, call, make, hand_over)
    if gives_result(body, facts.depths, call, len(stack)):
        _take_result(emitter)
        stack.append(VALUE)
    else:
        emitter.delete_fast(_RESULT)
    if following.opname in _RETURNS and landing > call and stack:
        emitter.return_value()
    else:
        hand_over(emitter, make(landing, stack))
    return emitter.instructions


def _leave_loop(
    emitter: Emitter,
    frame: Frame,
    loop: int,
    make: Callable[..., ResumePlan],
    hand_over: Callable[[Emitter, ResumePlan], None],
) -> None:
    """Where the answer is that there are no more items, go on behind the loop."""
    goes_on = emitter.label()
    emitter.load_fast(_RESULT)
    emitter.load_const(End)
    emitter.is_op()
    emitter.pop_jump_if_false(goes_on)
    emitter.delete_fast(_RESULT)
    emitter.pop_top()
    hand_over(emitter, make(after_loop(decoded(frame.code).body, loop), slots(frame)[:-1]))
    emitter.place(goes_on)


def _take_result(emitter: Emitter) -> None:
    emitter.load_fast(_RESULT)
    emitter.delete_fast(_RESULT)


def first_of_call(body: CodeBody, index: int) -> int:
    """A call's first instruction: those before it that only prepare it must run with it."""
    while index > 0 and body.instructions[index].opname in ("CALL", "PRECALL", "KW_NAMES"):
        if body.instructions[index - 1].opname not in ("PRECALL", "KW_NAMES"):
            break
        index -= 1
    return index


def consumed_by_call(instruction: Instruction) -> int:
    """How many stack slots a call takes; 0 for anything else, which takes no NULL."""
    match instruction.opname:
        case "CALL":
            return instruction.arg + 2
        case "CALL_KW":
            return instruction.arg + 3
        case "CALL_FUNCTION_EX":
            return 3 + (instruction.arg & 1)
    return 0
