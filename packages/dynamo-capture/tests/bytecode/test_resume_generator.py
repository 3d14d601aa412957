"""A generator made anew where another one is suspended goes on as that one would."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator
from types import CellType, FunctionType
from typing import Any

import pytest

from dynamo_capture.bytecode.decode import decode
from dynamo_capture.bytecode.depth import stack_depths
from dynamo_capture.bytecode.errors import UnsupportedBytecodeError
from dynamo_capture.bytecode.resume.analysis import VALUE
from dynamo_capture.bytecode.resume.code import ResumeCodes


def counting(n: int) -> Iterator[int]:
    i = 0
    while i < n:
        yield i
        i += 1


def answering(n: int) -> Generator[Any, Any, Any]:
    got = []
    while True:
        try:
            item = yield (n, list(got))
        except KeyError as error:
            got.append(("caught", error.args))
            continue
        if item is None:
            return got
        got.append(item)


def closing(log: list[str]) -> Iterator[int]:
    try:
        yield 1
        yield 2
    finally:
        log.append("closed")


def over(it: Iterator[int]) -> Iterator[Any]:
    for item in it:
        yield item, "first"
        yield item, "second"


def delegating(it: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    result = yield from it
    yield "result", result


def celled(n: int) -> Iterator[Callable[[], int]]:
    total = n
    while True:
        total += 1
        yield lambda: total  # noqa: B023  # the cell is the point


def remade(generator: Any, function: FunctionType, stack: tuple[Any, ...] = ()) -> Any:
    """A generator that goes on where ``generator`` is suspended; ``stack`` is what lies on its value stack."""
    code = function.__code__
    body = decode(code)
    started = inspect.getgeneratorstate(generator) == inspect.GEN_SUSPENDED
    if started:
        offset = generator.gi_frame.f_lasti
        index = body.index_of_offset(offset)
        index += body.instructions[index].opname == "YIELD_VALUE"
    else:
        index = 1 + next(i for i, one in enumerate(body.instructions) if one.opname == "RETURN_GENERATOR")
    depth = stack_depths(body)[index]
    assert depth is not None
    variables = dict(generator.gi_frame.f_locals)
    unbound = [name for name in body.varnames if name not in variables]
    plan = ResumeCodes().make_generator(code, index, (VALUE,) * (depth - 1), unbound=unbound)
    cells = tuple(CellType(variables[name]) if name in variables else CellType() for name in plan.freevars)
    arguments = [stack[p.which] if p.kind == "stack" else variables[p.which] for p in plan.parameters]  # type: ignore[index]
    made = FunctionType(plan.code, function.__globals__, function.__name__, None, cells or None)(*arguments)
    if started:
        assert next(made) is None
    return made


@pytest.mark.parametrize("taken", [0, 1, 2, 3])
def test_where_it_is_suspended(taken: int) -> None:
    generator = counting(3)
    for _ in range(taken):
        next(generator)
    assert list(remade(generator, counting)) == list(range(taken, 3))  # type: ignore[arg-type]


def test_sent_and_thrown_values() -> None:
    def drive(answer: Any) -> Any:
        found = [answer.send("b"), answer.throw(KeyError("k")), answer.send("c")]
        with pytest.raises(StopIteration) as stop:
            answer.send(None)
        return found, stop.value.value

    results = []
    for again in (False, True):
        generator = answering(7)
        next(generator)
        generator.send("a")
        results.append(drive(remade(generator, answering) if again else generator))  # type: ignore[arg-type]
    assert results[0] == results[1]


def test_closing_runs_what_is_final() -> None:
    log: list[str] = []
    generator = closing(log)
    next(generator)
    again = remade(generator, closing)  # type: ignore[arg-type]
    again.close()
    assert log == ["closed"]
    assert list(again) == []


@pytest.mark.parametrize("taken", [1, 2, 3])
def test_an_unfinished_loop(taken: int) -> None:
    expected = list(over(iter([1, 2])))
    it = iter([1, 2])
    generator = over(it)
    for _ in range(taken):
        next(generator)
    assert list(remade(generator, over, (it,))) == expected[taken:]  # type: ignore[arg-type]


def test_delegation_reaches_the_inner_generator() -> None:
    inner = answering(1)
    generator = delegating(inner)
    next(generator)
    again = remade(generator, delegating, (inner,))  # type: ignore[arg-type]
    assert again.gi_yieldfrom is inner
    assert again.send("x") == (1, ["x"])
    assert again.throw(KeyError("k")) == (1, ["x", ("caught", ("k",))])
    assert again.send(None) == ("result", ["x", ("caught", ("k",))])
    inner = answering(1)
    generator = delegating(inner)
    next(generator)
    remade(generator, delegating, (inner,)).close()  # type: ignore[arg-type]
    assert inspect.getgeneratorstate(inner) == inspect.GEN_CLOSED


def test_cells() -> None:
    generator = celled(4)
    assert next(generator)() == 5
    again = remade(generator, celled)  # type: ignore[arg-type]
    assert next(again)() == 6


def test_names_are_the_originals() -> None:
    generator = counting(3)
    next(generator)
    again = remade(generator, counting)  # type: ignore[arg-type]
    assert (again.__name__, again.gi_code.co_name) == ("counting", "counting")
    assert again.gi_code.co_filename == __file__


def test_a_generator_is_no_place_for_a_plain_resume_function() -> None:
    with pytest.raises(UnsupportedBytecodeError, match="CAP102"):
        ResumeCodes().make(counting.__code__, 6, ())
