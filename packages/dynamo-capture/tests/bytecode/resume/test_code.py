"""Leaving a function at any instruction and resuming it there gives what the whole function gives."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import pytest

from dynamo_capture.bytecode.assemble import assemble
from dynamo_capture.bytecode.control_flow import ControlFlow
from dynamo_capture.bytecode.decode import decode
from dynamo_capture.bytecode.depth import stack_depths, stack_effect
from dynamo_capture.bytecode.emit import Emitter
from dynamo_capture.bytecode.errors import UnsupportedBytecodeError
from dynamo_capture.bytecode.instruction import CodeBody
from dynamo_capture.bytecode.resume.analysis import NULL, VALUE, StackSlot
from dynamo_capture.bytecode.resume.code import ResumeCodes, ResumePlan
from dynamo_capture.bytecode.resume.method_loads import loads_method, stack_after
from dynamo_capture.bytecode.resume.splice import emit_resume_call, splice
from dynamo_capture.bytecode.versions.running import RULES

EVENTS: list[Any] = []


@contextlib.contextmanager
def noting(name: str) -> Iterator[str]:
    EVENTS.append(("enter", name))
    try:
        yield name
    except KeyError:
        EVENTS.append(("swallowed", name))
    finally:
        EVENTS.append(("exit", name))


def straight(a: int, b: int = 2, *rest: int, c: int = 3, **more: int) -> Any:
    total = a + b * c
    pair = (total, dict(a=a, **more))
    return [pair, max(rest, default=total), f"{a!r}:{b:>4}"]


def loops(n: int) -> list[int]:
    found = []
    for i in range(n):
        if i % 2:
            continue
        j = 0
        while j < i:
            j += 1
            if j > 4:
                break
        else:
            found.append(-1)
        found.append(j)
    for _ in ():
        found.append(99)
    return found


def tries(kind: int) -> Any:
    log = []
    try:
        log.append("try")
        try:
            if kind == 1:
                raise ValueError("one")
            if kind == 2:
                raise KeyError("two")
            if kind == 3:
                return ("early", log)
        except ValueError as error:
            log.append(str(error))
            try:
                int("x")
            except ValueError as second:
                log.append(str(second.__context__))
        else:
            log.append("else")
        finally:
            log.append("finally")
    except KeyError:
        log.append("outer")
        raise LookupError(tuple(log)) from None
    return log


def withs(kind: int) -> Any:
    with noting("a") as a, noting("b"):
        if kind == 1:
            {}["missing"]
        if kind == 2:
            raise RuntimeError(a)
        if kind == 3:
            return "inside"
        for i in range(3):
            with noting(str(i)):
                if i == 1:
                    break
    return a


def closures(n: int) -> Any:
    total = 0
    later: Callable[[], int]

    def add(k: int) -> None:
        nonlocal total
        total += k * n

    for i in range(3):
        add(i)
        n = n + 1
    later = lambda: total + n
    add(1)
    return later(), [add.__name__ for _ in range(2)]


def comprehensions(n: int) -> Any:
    grid = [[i * j for j in range(n) if j != 1] for i in range(n)]
    table = {k: (lambda: k)() for k in range(n)}
    return grid, table, {x % 2 for x in range(n)}, sum(y for y in range(n))


def celled_comprehensions(n: int) -> Any:
    k = "outer"
    show = lambda: k
    one = [k + 1 for k in range(n)]
    two = [(lambda: k)() for k in range(n)]
    return k, show(), one, two


def unpacking(n: int) -> Any:
    a, (b, *c), d = n, range(n + 2), "d"
    a, b = b, a
    del d
    x = y = a if b else c
    e = [*c, a, *range(2)]
    s = e[1:n]
    s[0:0] = [b]
    return x is y and (0 < n < 5 or not e) and {"a": a, "e": e, "s": s}


class Base:
    def value(self, n: int) -> int:
        return n + 1


class Derived(Base):
    def value(self, n: int) -> int:
        first = super().value(n)
        return first * 2 + super().value(n)


class Celled(Base):
    def value(self, n: int) -> Any:
        inner = lambda: self
        return inner().__class__.__name__, super().value(n)


CASES = [
    (straight, (1,), {}), (straight, (1, 5, 7, 9), {"c": 4, "z": 1}),
    (loops, (8,), {}), (loops, (0,), {}), (loops, (1,), {}), (loops, (13,), {}),
    *((tries, (kind,), {}) for kind in range(4)), *((withs, (kind,), {}) for kind in range(4)),
    (closures, (3,), {}), (comprehensions, (3,), {}), (comprehensions, (0,), {}), (celled_comprehensions, (2,), {}),
    (unpacking, (3,), {}), (unpacking, (1,), {}), (unpacking, (9,), {}),
    (Derived.value, (Derived(), 3), {}), (Celled.value, (Celled(), 3), {}),
]  # fmt: skip


def stack_kinds(body: CodeBody) -> list[tuple[StackSlot, ...] | None]:
    """Where NULLs are, if methods are loaded as attributes."""
    flow = ControlFlow(body.instructions)
    depths = stack_depths(body)
    kinds: list[tuple[StackSlot, ...] | None] = [None] * len(depths)
    kinds[0] = ()
    pending = [0]
    while pending:
        index = pending.pop()
        instruction, before = body.instructions[index], kinds[index]
        assert before is not None
        for successor in flow.successors[index]:
            depth = depths[successor]
            assert depth is not None
            after = [*before[:depth], *[VALUE] * (depth - len(before))]
            match instruction.opname:
                case "PUSH_NULL":
                    after[-1] = NULL
                case "LOAD_FAST_AND_CLEAR":  # of a cell variable it saves the cell
                    after[-1] = VALUE if instruction.argval in body.cellvars else NULL
                case "LOAD_GLOBAL" if instruction.arg & 1:
                    after[-2 if RULES.null_before_callable else -1] = NULL
                case _ if loads_method(instruction):  # plainly, where it is open at an exit
                    after = stack_after(instruction, before)
                case "SWAP":
                    after[-1], after[-instruction.arg] = after[-instruction.arg], after[-1]
                case name if name.startswith(("CALL", "PRECALL", "LOAD_ATTR", "LOAD_SUPER")) and after:
                    if not name.startswith("PRECALL"):
                        after[-1] = VALUE
            if kinds[successor] is None:
                kinds[successor] = tuple(after)
                pending.append(successor)
        if instruction.handler is not None:
            target = flow.index[instruction.handler.target]
            if kinds[target] is None:
                handler = instruction.handler
                kinds[target] = (*before[: handler.depth], *[VALUE] * (1 + handler.push_lasti))
                pending.append(target)
    return kinds


def places(function: Callable[..., Any]) -> Iterator[tuple[int, tuple[StackSlot, ...]]]:
    """Every instruction that a break may come before, with the stack there."""
    body = decode(function.__code__)
    start = next(i for i, instruction in enumerate(body.instructions) if instruction.opname == "RESUME") + 1
    previous = ""
    for index, kinds in enumerate(stack_kinds(body)):
        name = body.instructions[index].opname
        if (
            kinds is not None
            and index >= start
            and previous not in ("KW_NAMES", "PRECALL", "FOR_ITER")
            and name not in RULES.closing_for
        ):
            yield index, kinds
        previous = name


def outcome(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    EVENTS.clear()
    try:
        result = function(*args, **kwargs)
    except Exception as error:
        return type(error), error.args, type(error.__context__), list(EVENTS)
    return result, list(EVENTS)


def broken_at(function: FunctionType, index: int, plan: ResumePlan) -> FunctionType:
    """``function`` leaving at ``index`` through a resume function."""
    body = decode(function.__code__)
    start = next(i for i, instruction in enumerate(body.instructions) if instruction.opname == "RESUME") + 1
    emitter = Emitter(body.instructions[index].position)
    emit_resume_call(emitter, plan)
    code = assemble(splice(body, [], start, {index: emitter.instructions}))
    copy = FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def made(
    resumes: ResumeCodes, function: FunctionType, index: int, kinds: tuple[StackSlot, ...]
) -> ResumePlan | None:
    """The plan for a place, None if the place is refused."""
    try:
        return resumes.make(function.__code__, index, kinds)
    except UnsupportedBytecodeError as error:
        if error.code != "CAP103":
            raise
        return None


@pytest.mark.parametrize(
    "function", list(dict.fromkeys(case[0] for case in CASES)), ids=lambda f: f.__qualname__
)
def test_every_place(function: FunctionType) -> None:
    resumes = ResumeCodes()
    resumed, refused = 0, []
    for index, kinds in places(function):
        plan = made(resumes, function, index, kinds)
        if plan is None:
            refused.append(index)
            continue
        replacement = broken_at(function, index, plan)
        for _, args, kwargs in (case for case in CASES if case[0] is function):
            assert outcome(replacement, args, kwargs) == outcome(function, args, kwargs), (
                index,
                plan.parameters,
            )
        resumed += 1
    assert resumed > 10
    if function not in (tries, withs, comprehensions, celled_comprehensions):
        assert not [index for index in refused if not _in_handler(function, index)]


def _in_handler(function: FunctionType, index: int) -> bool:
    body = decode(function.__code__)
    protected = [i for i, instruction in enumerate(body.instructions) if instruction.handler is not None]
    return bool(protected) and index > protected[0]


@pytest.mark.parametrize(
    "function", [loops, tries, withs, closures, comprehensions], ids=lambda f: f.__qualname__
)
def test_resuming_a_resume_function_goes_back_to_the_original(function: FunctionType) -> None:
    resumes = ResumeCodes()
    found = list(places(function))
    index, kinds = found[len(found) // 4]
    outer = resumes.make(function.__code__, index, kinds)
    body = decode(outer.code)
    seen = 0
    for inner_index in range(len(body.instructions)):
        code, original = resumes.origin(outer.code, inner_index)
        if code is not function.__code__:
            continue
        assert decode(code).instructions[original].position == body.instructions[inner_index].position
        for place, slots in found:
            if place == original:
                try:
                    again = resumes.make(outer.code, inner_index, slots)
                except UnsupportedBytecodeError:
                    continue
                assert again is resumes.make(function.__code__, original, slots)
                seen += 1
    assert seen > 5
    assert resumes.is_resume_function(outer.code)


def test_lines_of_the_rest_are_the_originals() -> None:
    index, kinds = list(places(loops))[6]
    code = ResumeCodes().make(loops.__code__, index, kinds).code
    lines = {line for _, _, line in code.co_lines() if line}
    assert lines <= {line for _, _, line in loops.__code__.co_lines()}
    assert (code.co_name, code.co_qualname, code.co_filename) == ("loops", "loops", __file__)


def test_only_live_locals_are_passed() -> None:
    def f(a: int, b: int) -> int:
        c = a + b
        d = c * 2
        return d

    body = decode(f.__code__)
    index = next(i for i, x in enumerate(body.instructions) if x.argval == 2 or x.argval == (2,))
    before = next(i for i in range(index, 0, -1) if body.instructions[i].argval == "c")
    plan = ResumeCodes().make(f.__code__, before, (), keep=("b",))
    assert [tuple(parameter) for parameter in plan.parameters] == [("local", "b"), ("local", "c")]
    plan = ResumeCodes().make(f.__code__, before, ())
    assert [tuple(parameter) for parameter in plan.parameters] == [("local", "c")]


def test_locals_have_the_order_of_the_original() -> None:
    """One that has no value yet keeps its place in front of those that are passed; the others follow."""

    def f(x: int) -> int:
        if x > 10:
            a = b = c = 0
        c = x
        x = str(x)
        b = c
        a = b + c
        return a

    body = decode(f.__code__)
    index = next(i for i, one in enumerate(body.instructions) if one.argval == "str")
    plan = ResumeCodes().make(f.__code__, index, (), unbound=("a", "b"))
    names = ["x", "a", "b", "c"]
    assert f.__code__.co_varnames == tuple(names)
    assert [tuple(parameter) for parameter in plan.parameters] == [
        ("local", "x"),
        ("place", "a"),
        ("place", "b"),
        ("local", "c"),
    ]
    assert plan.code.co_varnames == tuple(names)
    assert broken_at(f, index, plan)(3) == f(3) == 6
    index = next(
        i for i, one in enumerate(body.instructions) if one.opname == "LOAD_CONST" and one.argval == 0
    )
    plan = ResumeCodes().make(f.__code__, index, (), unbound=("a", "b", "c"))
    assert [tuple(parameter) for parameter in plan.parameters] == [("local", "x")]
    assert plan.code.co_varnames == tuple(names)


def test_refusals() -> None:
    def generator() -> Iterator[int]:
        yield 1

    for code, call in (
        ("CAP102", lambda: ResumeCodes().make(generator.__code__, 3)),
        ("CAP105", lambda: ResumeCodes().make(loops.__code__, 3, (VALUE,) * 9)),
    ):
        with pytest.raises(UnsupportedBytecodeError) as caught:
            call()
        assert caught.value.code == code
    body = decode(withs.__code__)
    flow = ControlFlow(body.instructions)
    depths = stack_depths(body)
    lasti = next(x.handler for x in body.instructions if x.handler is not None and x.handler.push_lasti)
    index = flow.index[lasti.target]
    with pytest.raises(UnsupportedBytecodeError) as caught:
        ResumeCodes().make(withs.__code__, index, (VALUE,) * (depths[index] or 0))
    assert caught.value.code == "CAP103"
    assert stack_effect(body.instructions[index]) is not None


def test_a_rest_that_raises_where_it_begins():
    """What handles it there goes on with the rest, which does not raise again."""

    def program(log):
        for round_ in range(2):
            try:
                log.append(round_)
            except ValueError as error:
                log.append(str(error))
        return log

    instructions = decode(program.__code__).instructions
    index = next(i for i, one in enumerate(instructions) if one.opname in ("LOAD_METHOD", "LOAD_ATTR"))
    resumes = ResumeCodes()
    plan = resumes.make(program.__code__, index, (VALUE, VALUE))
    code = resumes.raising(plan.code)
    assert resumes.raising(plan.code) is code  # and not one more for each exception
    log: list[Any] = []
    given = {("stack", 0): iter([1]), ("stack", 1): log, ("local", "log"): log, ("local", "round_"): 7}
    raising = FunctionType(code, {"str": str, "ValueError": ValueError})
    assert raising(*(given[parameter] for parameter in plan.parameters), ValueError("first")) is log
    assert log == ["first", 1]


def test_a_rest_outside_of_blocks_has_nothing_to_leave():
    def program(x):
        return x + 1

    resumes = ResumeCodes()
    plan = resumes.make(program.__code__, 1, ())
    assert resumes.raising(plan.code) is None
    assert resumes.raising(program.__code__) is None
