"""Callables of the standard library that keep arguments: getters of ``operator`` made of tensors, partial functions."""

from __future__ import annotations

import operator

import pytest
import torch

START = """\
import functools, operator, sys
import torch
CALLS = [lambda: (torch.ones(2),), lambda: (torch.ones(2),), lambda: (torch.ones(3),)]
def caught(function, *args, **kwargs):
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__, str(error)
"""

PROGRAMS = {
    "methodcaller of a tensor": """
def program(x):
    add = operator.methodcaller("add", x, alpha=2)
    return add(x), add(x * 3), type(add), caught(add), caught(add, 1, 2), bool(add)
""",
    "getters that outlive the graph": """
def program(x):
    y = x * 2
    return operator.methodcaller("add", y, alpha=3), operator.itemgetter(y.long()), y
""",
    "itemgetter of tensors": """
def program(x):
    index = torch.arange(x.shape[0]).flip(0)
    take = operator.itemgetter(index, 0)
    return take(x), take(x.cumsum(0)), caught(take, 5)
""",
    "a getter of what is no name": """
def program(x):
    return caught(operator.methodcaller, x), caught(operator.attrgetter, x), x + 1
""",
    "a getter across a break": """
def program(x):
    add = operator.methodcaller("add", x)
    print(x.sum().item())
    return add(x) * 2
""",
    "the dictionary of a partial function": """
def program(x):
    p = functools.partial(torch.add, x)
    p.note = 3
    space = p.__dict__
    space["more"] = x
    return hasattr(p, "__dict__"), p.more + p(x), dict(space), p, space is p.__dict__, hasattr(p, "__name__")
""",
    "names of arguments that builtin classes do not take": """
def program(x):
    strict = sys.version_info >= (3, 14) or caught(lambda: list(map(lambda a: a, [x], strict=True)))
    return (strict, caught(lambda: filter(None, [x], start=1)), caught(lambda: range(stop=3)),
        caught(lambda: enumerate([x], begin=1)), caught(lambda: list(x=[x])), x + 1)
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_eager(name, as_in_eager):
    as_in_eager(START + PROGRAMS[name])


def test_getters_of_tensors_are_in_the_graph(whole):
    def program(x):
        return operator.methodcaller("add", x, alpha=2)(x)

    whole(program, (torch.ones(2),), (torch.ones(3),))


def test_a_descriptor_of_a_slot_writes(whole):
    class Slotted:
        __slots__ = ("a", "b")

    def program(x):
        made = Slotted()
        Slotted.a.__set__(made, x)
        type(made).__dict__["b"].__set__(made, 3)
        before = hasattr(made, "b")
        Slotted.b.__delete__(made)
        return made.a + 1, before, hasattr(made, "b"), Slotted.a.__get__(made)

    whole(program, (torch.ones(2),), (torch.ones(3),))
