"""Leaving a function in the middle of a call: the rest makes the call, under the handlers that it had."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import pytest

from dynamo_capture.bytecode.assemble import assemble
from dynamo_capture.bytecode.decode import decode
from dynamo_capture.bytecode.depth import stack_depths
from dynamo_capture.bytecode.emit import Emitter
from dynamo_capture.bytecode.errors import UnsupportedBytecodeError
from dynamo_capture.bytecode.resume.analysis import CALLEE, NULL, VALUE
from dynamo_capture.bytecode.resume.code import ResumeCodes, ResumePlan
from dynamo_capture.bytecode.resume.method_loads import open_at, stack_after
from dynamo_capture.bytecode.resume.splice import cut, emit_resume_call, splice, splice_call

EVENTS: list[Any] = []


def step(n: int) -> int:
    """The call that is left in the middle; the tests put something else in its place."""
    EVENTS.append(("step", n))
    if n == 3:
        raise ValueError(n)
    return n * 10


@contextlib.contextmanager
def noting(name: str) -> Iterator[str]:
    EVENTS.append(("enter", name))
    try:
        yield name
    except ValueError:
        EVENTS.append(("swallowed", name))
    finally:
        EVENTS.append(("exit", name))


def plain(n: int) -> Any:
    before = n + 1
    result = step(n)
    return before, result


def on_the_stack(n: int) -> Any:
    return [n, {"a": step(n), "b": n}, (n + 1, n + 2)]


def in_try(n: int) -> Any:
    log = []
    try:
        log.append("try")
        got = step(n)
        log.append("after")
    except ValueError as error:
        got = error.args
        log.append("caught")
    finally:
        log.append("finally")
    return got, log


def in_with(n: int) -> Any:
    got = None
    with noting("outer"), noting("inner"):
        got = step(n)
        EVENTS.append("behind")
    return got


def in_a_loop(n: int) -> Any:
    found = []
    for i in range(n):
        try:
            found.append((i, step(i)))
        except ValueError:
            found.append("caught")
            continue
    return found


def with_cells(n: int) -> Any:
    total = 0

    def add(m: int) -> int:
        nonlocal total
        total += m
        return total

    got = step(n)
    add(got)
    return add(1), total


class Base:
    def value(self, n: int) -> Any:
        return ["base", n]


class Derived(Base):
    def value(self, n: int) -> Any:
        got = step(n)
        return [*super().value(got), n]


FUNCTIONS = [plain, on_the_stack, in_try, in_with, in_a_loop, with_cells]


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    EVENTS.clear()
    try:
        return function(*args), list(EVENTS)
    except Exception as error:
        return type(error), error.args, list(EVENTS)


def call_of_step(function: FunctionType) -> int:
    """The index of the call of ``step``."""
    instructions = decode(function.__code__).instructions
    name = next(i for i, instruction in enumerate(instructions) if instruction.argval == "step")
    return next(i for i in range(name, len(instructions)) if instructions[i].opname == "CALL")


class Left:
    """In place of ``step``: the first call gives something to call later, others are made as ever."""

    def __init__(self) -> None:
        self.left = False

    def __call__(self, n: int) -> Any:
        if self.left:
            return step(n)
        self.left = True
        return lambda: step(n)


def plan_within(resumes: ResumeCodes, function: FunctionType, call: int) -> ResumePlan:
    """The plan for the middle of the call; loops and ``with`` blocks keep values on the stack, literals too."""
    body = decode(function.__code__)
    depths = stack_depths(body)
    below = [VALUE] * ((depths[call + 1] or 0) - 1)
    for load in open_at(body, [call + 1]):
        place = (depths[load] or 0) - 1
        below[place : place + 2] = stack_after(body.instructions[load], [VALUE])
    return resumes.make(function.__code__, call, below, callee=True)


def left_in_the_call(function: FunctionType, plan: ResumePlan, call: int) -> Callable[..., Any]:
    emitter = Emitter(decode(function.__code__).instructions[call].position)
    emit_resume_call(emitter, plan)
    body = decode(function.__code__)
    start = next(i for i, instruction in enumerate(body.instructions) if instruction.opname == "RESUME") + 1
    code = assemble(splice(body, [], start, {call + 1: emitter.instructions}))

    def run(*args: Any) -> Any:
        namespace = {**function.__globals__, "step": Left()}
        return FunctionType(code, namespace, function.__name__, None, function.__closure__)(*args)

    return run


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [0, 1, 3, 5])
def test_the_rest_makes_the_call(function: FunctionType, n: int) -> None:
    call = call_of_step(function)
    plan = plan_within(ResumeCodes(), function, call)
    assert plan.calls
    assert CALLEE in plan.parameters
    assert outcome(left_in_the_call(function, plan, call), n) == outcome(function, n)


def test_super_finds_the_first_argument() -> None:
    function: Any = Derived.value
    call = call_of_step(function)
    plan = plan_within(ResumeCodes(), function, call)
    assert plan.parameters[0].which == "self"
    assert outcome(left_in_the_call(function, plan, call), Derived(), 2) == outcome(Derived().value, 2)


def test_a_call_left_again_is_the_same_place() -> None:
    resumes = ResumeCodes()
    call = call_of_step(in_try)
    plan = plan_within(resumes, in_try, call)
    again = resumes.index_of(plan, in_try.__code__, call)
    assert resumes.origin(plan.code, again) == (in_try.__code__, call)
    assert resumes.make(plan.code, again, (), callee=True) is plan
    assert resumes.origin(plan.code, again + 1) == (in_try.__code__, call + 1)


def test_the_call_itself_has_no_resume_function() -> None:
    resumes = ResumeCodes()
    call = call_of_step(plain)
    plan = plan_within(resumes, plain, call)
    with pytest.raises(UnsupportedBytecodeError, match="calls its callee"):
        resumes.make(plan.code, resumes.index_of(plan, plain.__code__, call), (NULL, VALUE, VALUE))


@pytest.mark.parametrize("function", [plain, in_try, in_with, with_cells], ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [1, 3])
def test_splice_call_runs_something_in_the_calls_place(function: FunctionType, n: int) -> None:
    """As in a resume function, but the replacement is entered there: all that it needs is its arguments."""
    resumes = ResumeCodes()
    call = call_of_step(function)
    plan = plan_within(resumes, function, call)
    body = decode(plan.code)
    index = resumes.index_of(plan, function.__code__, call)
    prologue, leave = Emitter(), Emitter()
    for parameter, name in zip(plan.parameters, body.argument_names, strict=True):
        if parameter.kind == "stack":
            prologue.load_fast(name)
    prologue.load_fast(".callee")
    below = sum(parameter.kind == "stack" for parameter in plan.parameters)
    emit_resume_call(leave, resumes.make(function.__code__, call + 1, (VALUE,) * (below + 1)))
    replaced = assemble(splice_call(body, prologue.instructions, index, leave.instructions))
    assert replaced.co_varnames[: replaced.co_argcount] == plan.code.co_varnames[: plan.code.co_argcount]
    swapped = ResumePlan(replaced, plan.parameters, plan.freevars, plan.stack)
    assert outcome(left_in_the_call(function, swapped, call), n) == outcome(function, n)


def test_cut_takes_control_where_it_would_go_on() -> None:
    body = decode(plain.__code__)
    emitter = Emitter()
    emitter.pop_top()
    emitter.load_const("cut")
    emitter.return_value()
    code = assemble(cut(body, {call_of_step(plain) + 1: emitter.instructions}))
    assert FunctionType(code, plain.__globals__)(1) == "cut"


def maybe(flag: bool) -> Any:
    if flag:
        bound = 1
    try:
        return step(bound)
    except UnboundLocalError:
        return "unbound"


@pytest.mark.parametrize("flag", [True, False])
def test_a_local_that_may_be_unbound(flag: bool) -> None:
    body = decode(maybe.__code__)
    place = next(i for i, instruction in enumerate(body.instructions) if instruction.argval == "step")
    plan = ResumeCodes().make(maybe.__code__, place, (), maybe=("bound",))
    assert plan.maybe == {"bound"}
    emitter = Emitter(body.instructions[place].position)
    emit_resume_call(emitter, plan)
    start = next(i for i, instruction in enumerate(body.instructions) if instruction.opname == "RESUME") + 1
    code = assemble(splice(body, [], start, {place: emitter.instructions}))
    assert FunctionType(code, maybe.__globals__)(flag) == maybe(flag)
