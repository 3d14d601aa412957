"""Functions of the standard library that the translator knows, on arguments that are seldom given."""

import functools
import importlib
import inspect
import operator
import queue

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


@pytest.mark.parametrize(
    "program", [wrapped, wrapped_in_part, signatures, imported, joined, looked_at], ids=lambda f: f.__name__
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
