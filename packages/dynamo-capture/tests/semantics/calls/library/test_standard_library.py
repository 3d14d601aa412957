"""Functions of the standard library that the translator knows, on arguments that are seldom given."""

import atexit
import functools
import importlib
import inspect
import operator
import os
import queue
import subprocess
import sys
import types

import pytest
import torch

import dynamo_capture


class Method:
    def with_a_star(*args, k=1):
        return k

    def plain(self, a, b=2):
        return a


def described(a: int) -> str:
    """A text."""
    return a


described.tag = 5


def wrapped():
    @functools.wraps(described)
    def outer(*given):
        return described(*given)

    return (
        outer.__name__,
        outer.__qualname__,
        outer.__doc__,
        outer.__module__,
        outer.tag,
        tuple(outer.__annotations__),
        outer(3),
        tuple(sorted(vars(outer))),
    )


def wrapped_in_part():
    def inner():
        return 1

    inner.mark = 2

    @functools.wraps(inner, assigned=("__doc__",), updated=())
    def outer():
        return 1

    @functools.wraps(wrapped=inner)
    def whole():
        return 1

    return outer.__name__, hasattr(outer, "mark"), whole.mark, whole.__name__, whole.__wrapped__ is inner


def signatures():
    made = Method()
    return str(inspect.signature(made.with_a_star)), str(inspect.signature(made.plain))


def imported():
    relative = importlib.import_module(".abc", package="collections")
    return relative.__name__, importlib.import_module(name="json").__name__


def joined():
    items = [1]
    same = operator.iconcat(items, (2,)) is items
    return same, tuple(items), operator.concat("a", "b"), tuple(operator.concat([1], [2]))


def looked_at():
    items = [1, 2]
    operator.setitem(items, 0, 5)
    operator.delitem(items, 1)
    return (
        tuple(items),
        operator.contains({1: 2}, 1),
        operator.truth([]),
        operator.not_([]),
        operator.index(True),
    )


def type_parameters():
    def f(x):
        return x

    before = hasattr(f, "__type_params__"), getattr(f, "__type_params__", 0)  # since CPython 3.12
    f.__type_params__ = (1,)
    return before, f.__type_params__, tuple(vars(f))


@pytest.mark.parametrize(
    "program",
    [wrapped, wrapped_in_part, signatures, imported, joined, looked_at, type_parameters],
    ids=lambda f: f.__name__,
)
def test_results(agrees, program):
    agrees(program)


@pytest.mark.parametrize(
    "program",
    [
        lambda: operator.concat(1, 2),
        lambda: operator.concat({}, {}),
        lambda: operator.concat([1], (2,)),
        lambda: operator.iconcat(1, 2),
        lambda: operator.index(1.5),
        lambda: operator.getitem([1], 4),
        lambda: importlib.import_module("a_module_that_is_not_there"),
    ],
)
def test_what_python_refuses(agrees, program):
    agrees(program)


def test_what_is_put_into_a_queue_is_there_after_the_graph():
    def program(waiting, x):
        waiting.put(x + 1)
        waiting.put(item="last", block=False)
        return x * 2

    waiting = queue.SimpleQueue()
    dynamo_capture.optimize(lambda graph, examples: graph.forward, fullgraph=True)(program)(
        waiting, torch.ones(1)
    )
    assert (waiting.get().item(), waiting.get(), waiting.empty()) == (2, "last", True)


def test_what_is_asked_of_a_queue_sees_what_was_put():
    def program(waiting, x):
        waiting.put(x + 1)
        size = waiting.qsize()
        return waiting.get() * size

    run = dynamo_capture.optimize(lambda graph, examples: graph.forward)(program)
    assert run(queue.SimpleQueue(), torch.ones(1)).item() == 2


def test_a_call_that_a_queue_refuses_puts_nothing():
    def program(waiting, x):
        waiting.put(x)
        waiting.put()

    waiting = queue.SimpleQueue()
    with pytest.raises(TypeError, match="put"):
        dynamo_capture.optimize(lambda graph, examples: graph.forward)(program)(waiting, torch.ones(1))
    assert waiting.qsize() == 1


def test_functions_of_paths_ask_in_each_call(tmp_path, monkeypatch):
    monkeypatch.setenv("NAME_IN_A_PATH", "one")
    (tmp_path / "first").mkdir()
    link = str(tmp_path / "link")

    def program(x):
        asked = (
            os.path.abspath("a"),
            os.path.realpath("a"),
            os.path.relpath(link),
            os.path.expandvars("$NAME_IN_A_PATH"),
        )
        return (
            x + 1,
            asked,
            os.path.islink(link),
            os.path.lexists(link),
            os.path.join("a", os.path.basename(link)),
        )

    compiled = dynamo_capture.optimize("eager")(program)
    x = torch.ones(2)
    monkeypatch.chdir(tmp_path)
    assert compiled(x)[1:] == program(x)[1:]
    os.symlink(tmp_path, link)
    monkeypatch.setenv("NAME_IN_A_PATH", "two")
    monkeypatch.chdir(tmp_path / "first")
    assert compiled(x)[1:] == program(x)[1:]


def test_a_generator_that_returns_none_stops_without_arguments():
    def steps(value):
        yield 1
        return value

    def program(x):
        found = []
        for value in (None, 2, (2,)):
            for step in (next, lambda it: it.send(None), lambda it: it.__next__()):
                made = steps(value)
                step(made)
                try:
                    step(made)
                except StopIteration as stop:
                    found.append((stop.args, stop.value))
        return x + 1, found

    x = torch.ones(2)
    assert dynamo_capture.optimize("eager")(program)(x)[1] == program(x)[1]


def test_functions_are_registered_for_the_end_in_each_call():
    program = """
import atexit, torch, dynamo_capture

def program(x, log):
    log.append("before")
    registered = atexit.register(print, "at the end", *log, sep="-")
    log.append("after")
    return x + 1, registered is print

compiled = dynamo_capture.optimize(lambda graph, inputs: graph.forward, fullgraph=True)(program)
log = []
for _ in range(2):
    assert compiled(torch.ones(2), log)[1]
print(*log)
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    told = done.stdout.splitlines()
    assert told == ["before after before after", "at the end-before-after-before", "at the end-before"]


def test_what_cannot_be_called_is_not_registered_for_the_end():
    def program(x):
        try:
            atexit.register(3)
        except TypeError as error:
            return x + 1, str(error)

    found = dynamo_capture.optimize(lambda graph, inputs: graph.forward)(program)(torch.ones(2))
    assert found[1] == program(torch.ones(2))[1]


def test_what_describes_a_module_is_read_after_it_was_set():
    def program(x, module):
        module.__wrapped__ = len
        return inspect.unwrap(module) is len, x + 1

    fast = dynamo_capture.optimize(lambda graph, inputs: graph.forward)(program)
    for _ in range(2):
        assert fast(torch.ones(2), types.ModuleType("given"))[0]
