"""Breaks spliced into running functions by the hook: each rest is a function that the hook sees and breaks again."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

import pytest

from dynamo_capture.bytecode.assemble import assemble
from dynamo_capture.bytecode.decode import decode
from dynamo_capture.bytecode.depth import stack_depths
from dynamo_capture.bytecode.emit import Emitter
from dynamo_capture.bytecode.instruction import CodeBody
from dynamo_capture.bytecode.resume.analysis import VALUE
from dynamo_capture.bytecode.resume.code import ResumeCodes
from dynamo_capture.bytecode.resume.splice import emit_resume_call, splice
from dynamo_capture.hook import frame_hook

PAUSES: list[Any] = []


def pause(value: Any) -> Any:
    PAUSES.append(value)
    if value == "raise":
        raise KeyError("from the break")
    return value


def after_pause(body: CodeBody) -> list[int]:
    """The places after each call of ``pause`` in an assignment: the stack holds only what was there before."""
    found, called = [], False
    for index, instruction in enumerate(body.instructions):
        called = called or (instruction.opname == "LOAD_GLOBAL" and instruction.argval == "pause")
        if called and instruction.opname.startswith("STORE_FAST"):
            found.append(index)
            called = False
    return found


def after_resume(body: CodeBody) -> int:
    """Where the function's own code starts."""
    return 1 + next(i for i, instruction in enumerate(body.instructions) if instruction.opname == "RESUME")


class Breaker:
    """Answers every function that calls ``pause`` with a replacement that leaves after each such call."""

    def __init__(self, tail: bool = True) -> None:
        self.tail = tail
        self.resumes = ResumeCodes()
        self.seen: list[CodeType] = []

    def __call__(self, frame: frame_hook.FrameView, count: int) -> Any:
        body = decode(frame.code)
        places = after_pause(body)
        if not places:
            return frame_hook.SKIP
        self.seen.append(frame.code)
        depths = stack_depths(body)
        exits = {}
        for place in places:
            emitter = Emitter(body.instructions[place].position)
            plan = self.resumes.make(frame.code, place, [VALUE] * (depths[place] or 0))
            emit_resume_call(emitter, plan, tail=self.tail and self.resumes.is_resume_function(frame.code))
            exits[place] = emitter.instructions
        start = after_resume(body)
        if not self.resumes.is_resume_function(frame.code):
            return frame_hook.Entry(assemble(splice(body, [], start, exits)))
        # a rest starts at the very place that the break before it led to: go past its door
        entry = next(
            i for i, instruction in enumerate(body.instructions) if instruction.opname.startswith("JUMP")
        )
        first = body.instructions[entry].target
        assert first is not None
        prologue = body.instructions[start:entry]
        return frame_hook.Entry(assemble(splice(body, prologue, body.instructions.index(first), exits)))


def straight(a: Any) -> Any:
    b = a + 1
    c = pause(b)
    d = c * 2
    c = pause(d)
    return a, b, c, d


def looped(n: int) -> Any:
    total = []
    for i in range(n):
        k = pause(i)
        total.append(k)
        for j in range(2):
            m = pause((i, j))
            if j == i:
                break
            total.append(m)
    return total


@contextlib.contextmanager
def swallowing(log: list[Any]) -> Iterator[None]:
    try:
        yield
    except KeyError as error:
        log.append(error.args)
    finally:
        log.append("exit")


def protected(what: Any) -> Any:
    log: list[Any] = []
    with swallowing(log):
        x = pause("first")
        log.append(x)
        try:
            y = pause(what)
            log.append(y)
        except KeyError:
            z = pause("in the handler")
            log.append(z)
            raise
        finally:
            log.append("finally")
    return log


def celled(n: int) -> Any:
    count = n

    def add(k: int) -> None:
        nonlocal count
        count += k

    one = pause(count)
    add(10)
    two = pause(count)
    count += 100
    return one, two, count, add


CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (straight, (1,)), (looped, (0,)), (looped, (4,)), (protected, ("calm",)), (protected, ("raise",)),
]  # fmt: skip


@pytest.mark.parametrize("tail", [True, False])
@pytest.mark.parametrize(
    ("function", "args"), CASES, ids=lambda value: getattr(value, "__name__", str(value))
)
def test_broken_functions_do_what_they_did(function: FunctionType, args: tuple[Any, ...], tail: bool) -> None:
    PAUSES.clear()
    expected = function(*args), list(PAUSES)
    code = function.__code__.replace()
    breaker = Breaker(tail)
    wrapped = frame_hook.optimize(FunctionType(code, function.__globals__, function.__name__), breaker)
    for _ in range(3):
        PAUSES.clear()
        assert (wrapped(*args), PAUSES) == expected
    assert len({id(code) for code in breaker.seen}) == len(breaker.seen), (
        "each code object is asked about once"
    )


def test_a_break_in_a_loop_resumes_in_one_function() -> None:
    breaker = Breaker()
    wrapped = frame_hook.optimize(FunctionType(looped.__code__.replace(), globals(), "looped"), breaker)
    assert wrapped(7) == looped(7)
    assert len(breaker.seen) == 3, "the function, and one rest for each of the two places"
    assert [breaker.resumes.is_resume_function(code) for code in breaker.seen] == [False, True, True]


def test_many_rounds_need_no_deeper_stack() -> None:
    def many(n: int) -> int:
        total = 0
        for i in range(n):
            k = pause(i)
            total += k
        return total

    wrapped = frame_hook.optimize(many, Breaker())
    assert wrapped(20_000) == many(20_000)
    with pytest.raises(RecursionError):
        frame_hook.optimize(FunctionType(many.__code__.replace(), globals()), Breaker(tail=False))(20_000)


def test_what_a_round_held_is_free_in_the_next() -> None:
    class Held:
        pass

    alive: list[weakref.ref[Held]] = []

    def rounds(n: int) -> list[int]:
        counts = []
        for _ in range(n):
            held = Held()
            alive.append(weakref.ref(held))
            del held
            count = pause(sum(reference() is not None for reference in alive))
            counts.append(count)
        return counts

    expected = rounds(4)
    alive.clear()
    assert frame_hook.optimize(rounds, Breaker())(4) == expected


def test_closures_are_shared_with_the_rest() -> None:
    wrapped = frame_hook.optimize(FunctionType(celled.__code__.replace(), globals(), "celled"), Breaker())
    for _ in range(2):
        one, two, count, add = wrapped(1)
        assert (one, two, count) == (1, 11, 111)
        add(1000)
        assert add.__closure__[0].cell_contents == 1111


def test_the_place_after_a_loop_may_be_named_by_its_jump() -> None:
    def f(n: int) -> list[Any]:
        found: list[Any] = []
        for i in range(n):
            found.append(i)
        found.append("after")
        return found

    body = decode(f.__code__)
    loop = next(instruction for instruction in body.instructions if instruction.opname == "FOR_ITER")
    assert loop.target is not None
    place = body.instructions.index(loop.target)
    emitter = Emitter()
    emit_resume_call(emitter, ResumeCodes().make(f.__code__, place))
    replaced = assemble(splice(body, [], after_resume(body), {place: emitter.instructions}))
    assert FunctionType(replaced, globals())(3) == f(3) == [0, 1, 2, "after"]


def test_an_existing_function_can_be_called() -> None:
    code = straight.__code__.replace()
    body = decode(code)
    place = after_pause(body)[0]
    plan = ResumeCodes().make(code, place, [VALUE])
    rest = FunctionType(plan.code, globals(), "straight")
    emitter = Emitter()
    emit_resume_call(emitter, plan, function=rest)
    start = after_resume(body)
    replaced = assemble(splice(body, [], start, {place: emitter.instructions}))
    assert rest in replaced.co_consts
    assert FunctionType(replaced, globals())(1) == straight(1)
