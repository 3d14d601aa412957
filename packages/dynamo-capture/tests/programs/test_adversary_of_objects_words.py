"""The words of exceptions that functions in C raise, found by the adversary ``objects``."""

from __future__ import annotations

import sys

import pytest

START = """\
import collections, functools, operator, types
import torch
CALLS = [lambda: (torch.arange(6.) + 1, 3), lambda: (torch.arange(6.) * 2, 0), lambda: (torch.arange(4.) - 1, -1)]
def caught(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__, str(error)
class Asked(type):
    def __getattribute__(cls, name): return super().__getattribute__(name)
class OfAsked(metaclass=Asked): pass
class S(set): pass
class L(list): pass
class D(dict): pass
class Kept:
    def __init__(self):
        self.kept, self.bound = S().pop, L().append
        self.pop = L().append
    @property
    def given(self): return self.pop
s, l, d, kept = S(), L(), D(), Kept()
"""

# From CPython 3.12 on the words depend on whether the instruction has been specialized.
THROUGH_SUPER = "lambda: super(S, s).pop(item(x)), " if sys.version_info < (3, 12) else ""
PROGRAMS = {
    "of a class that has no items": """
def program(x, n):
    try:
        return type(OfAsked())["a"], x + n
    except TypeError as error:
        return error.args, x + n
""",
    "of a method whose class is the parent's": """
def program(x, n):
    try:
        return s.pop("a", n), x + n
    except TypeError as error:
        return error.args, x + n
""",
    "of methods that were loaded before the graph ended": """
def item(x):
    print(end="")
    return x.sum().item()
def program(x, n):
    calls = (lambda: s.pop(item(x)), lambda: l.append(item(x), n), lambda: d.get(item(x), n, n),
             lambda: l.index(item(x)), lambda: x.add(item(x), n, n), lambda: s.pop(k=item(x)),
             lambda: kept.kept(item(x)), lambda: kept.bound(item(x), n), lambda: kept.pop(item(x), n), lambda: kept.given(item(x), n),
             {through_super}lambda: S.pop(s, item(x)), lambda: "a".join(item(x), n))
    return [caught(call) for call in calls], x + n
""",
    "of getters that are called otherwise": """
getters = operator.itemgetter(1), operator.attrgetter("a"), operator.methodcaller("a", 1)
def program(x, n):
    calls = [call for g in getters for call in (g, g.__call__, lambda: g(1, 2), lambda: g(1, k=2))]
    inside = operator.itemgetter(1)
    return [caught(call) for call in calls], caught(inside), caught(inside, 1, 2), x + n
""",
    "of tensors and numbers as indices": """
o = torch.tensor(3)
def program(x, n):
    calls = (lambda: o[n], lambda: x.sum()[n], lambda: range(torch.ones(1)), lambda: range(torch.ones(2)),
             lambda: [1, 2][torch.ones(1)], lambda: [1, 2][torch.tensor(True)], lambda: range(torch.tensor(3))[n])
    return [caught(call) for call in calls], x + n
""",
    "of repetitions by what is no number": """
class M:
    def __rmul__(self, other): return "rmul"
m = M()
def program(x, n):
    calls = lambda: [1].__mul__("a"), lambda: (1,).__mul__(m), lambda: [1] * "a", lambda: "a".__mul__(1.5), lambda: [1].__mul__(m)
    return [caught(call) for call in calls], [1].__mul__(2), x + n
""",
    "of containers, and what they are then": """
B = collections.namedtuple("B", "a b", defaults=[3])
def times(t, other):
    t *= other
    return t
def program(x, n):
    one, two = {1, 2}, {1: 2}
    calls = (lambda: one.intersection_update([1], 2, 3), lambda: two.__ior__(x), lambda: [1].index(1, "b"),
             lambda: [1].index(1, None), lambda: times(B(1), [1]), lambda: times(B(1), 2), lambda: times((1,), [1]),
             lambda: B(1) + [1], lambda: one.intersection_update([2, 1], [2]))
    return [caught(call) for call in calls], one, two, x + n
""",
    "of a class that is spread as a mapping": """
def program(x, n):
    return caught(lambda: {**dict}), caught(lambda: dict(**collections.OrderedDict)), x + n
""",
    "of super under another name": """
other = super
def item(x):
    print(end="")
    return x.sum().item()
def program(x, n):
    return caught(other), caught(lambda: other().a), ended(x, n), x + n
def ended(x, n):
    try:
        return item(x), other(), n
    except RuntimeError as error:
        return str(error)
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_eager(name, as_in_eager):
    as_in_eager(START + PROGRAMS[name].replace("{through_super}", THROUGH_SUPER))
