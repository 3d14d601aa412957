"""Objects whose dictionary of attributes the program holds itself: an attribute and an item are one place."""

from __future__ import annotations

import pytest
import torch

from dynamo_capture import optimize

START = """\
import collections, functools
import torch
class Plain: pass
class Of(list): pass
class Pair(collections.namedtuple("Pair", "a b")): pass
class Config(dict):
    def __init__(self, **entries):
        super().__init__(entries)
        self.__dict__ = self
MADE = [
    Plain, Of, lambda: Pair(1, 2), lambda: functools.partial(max), lambda: torch.nn.Linear(1, 1), lambda: torch.ones(1),
    lambda: ValueError(1), lambda: (lambda x: x), lambda: Config(k=1),
]
def both(o):
    return torch.ones(2), o, o.__dict__
CALLS = [functools.partial(lambda make: both(make()), make) for make in MADE]
def caught(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__, str(error)
"""

PROGRAMS = {
    "an item, then the attribute": """
def program(x, o, d):
    before = getattr(o, "q", None)
    d["q"] = 3
    return before, getattr(o, "q", None), x + 1
""",
    "an item of an object that is read later": """
def program(x, o, d):
    d["q"] = 3
    return getattr(o, "q", None), x + 1
""",
    "an attribute, then the item": """
def change(o, d):
    o.q = 5
    found = d["q"]
    d["q"] = 4
    return o.q, found, vars(o)["q"]
def program(x, o, d):
    return caught(change, o, d), x + 1
""",
    "both, then neither": """
def change(o, d):
    d["q"] = 3
    o.q = 5
    del d["q"]
    return getattr(o, "q", 7), len(d)
def program(x, o, d):
    return caught(change, o, d), x + 1
""",
    "an item behind a property of its name": """
class Behind:
    def __init__(self): self.__dict__["value"] = 1.0
    value = property(lambda self: 13.0, lambda self, value: None)
CALLS = [lambda: (torch.ones(2), Behind()), lambda: (torch.ones(3), Behind())]
def program(x, o):
    return "value" in o.__dict__, x * o.value, o.__dict__["value"], o.value, vars(o)
""",
    "the dictionary of a descriptor": """
o = functools.cached_property(lambda self: 1)
CALLS = [lambda: (torch.ones(2),), lambda: (torch.ones(3),)]
def program(x):
    o.__dict__["c"] = 4
    return caught(lambda: o.c), o.__dict__.get("c"), x + 1
""",
    "an object that is its own dictionary": """
CALLS = [lambda: (torch.ones(2), Config(k=1)), lambda: (torch.ones(3), Config(k=2))]
def program(x, o):
    before = o.k, o["k"]
    o.k = 4
    between = o.k, o["k"]
    o["k"] = 5
    return before, between, o.k, o["k"], x + 1
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_eager(name, as_in_eager):
    as_in_eager(START + PROGRAMS[name])


def test_a_dictionary_of_attributes_that_is_replaced(same):
    class Holder:
        def __init__(self, n):
            self.n = n

    def f(x, holder):
        made = Holder(1)
        made.__dict__ = {"n": 7}
        holder.__dict__ = {"n": made.n + 2}
        return x + holder.n, vars(holder), made.n

    same(f, (torch.ones(2), Holder(2)))


class Ordered:
    def __init__(self):
        self.n, self.m = 1, 2


def _deleted(o):
    del o.n
    o.n = 3


def _by_dictionary(o):
    del o.__dict__["n"]
    o.__dict__["n"] = 3


def _popped(o):
    o.__dict__["n"] = o.__dict__.pop("n")


@pytest.mark.parametrize("change", [_deleted, _by_dictionary, _popped])
def test_what_is_set_again_comes_last(same, change):
    def f(x, o):
        change(o)
        return list(vars(o)), x + 1

    same(f, (torch.ones(2), Ordered()))
    given = Ordered()
    optimize(lambda graph, inputs: graph.forward)(f)(torch.ones(2), given)
    assert list(vars(given)) == ["m", "n"]
